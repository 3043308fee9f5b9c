"""Fine-tuned models: negatives sampled from a run, teachers' scores of them, and fine-tuning steps.

Inputs come from the plan, by role: src/encore/plan/artifacts/negatives.py, teachers.py and models.py says which folder each role is.
"""


rule negatives:
    """Sample negatives for training queries from a run, never a judged document."""
    input:
        manifests("negatives/{system}/{topics}", "run", "collection", "first"),
    output:
        manifest="results/negatives/{system}/{topics}/manifest.json",
    log:
        "results/logs/negatives/{system}/{topics}.log",
    localrule: EXECUTION.local_scores
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **at_least("negatives/{system}/{topics}", mem_mb=2_000, runtime=30),
        about=about_of("negatives/{system}/{topics}"),
    params:
        spec=spec_of("negatives/{system}/{topics}"),
    shell:
        f"{MAKE} negatives" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule negatives_from_file:
    """Sample negatives for training queries from a file in which others have listed them."""
    input:
        manifests("negatives/{listed}/{topics}", "fetched", "collection"),
    output:
        manifest="results/negatives/{listed}/{topics}/manifest.json",
    log:
        "results/logs/negatives_from_file/{listed}/{topics}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **at_least("negatives/{listed}/{topics}", mem_mb=8_000, runtime=4 * 60),
        about=about_of("negatives/{listed}/{topics}"),
    params:
        spec=spec_of("negatives/{listed}/{topics}"),
    shell:
        f"{MAKE} negatives_from_file" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule negatives_from_dataset:
    """Sample negatives for training queries from those that a collection was published with."""
    input:
        manifests("negatives/{published}/{topics}", "collection"),
    output:
        manifest="results/negatives/{published}/{topics}/manifest.json",
    log:
        "results/logs/negatives_from_dataset/{published}/{topics}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **by_attempt(mem_mb=8_000, runtime=4 * 60),
        about=about_of("negatives/{published}/{topics}"),
    params:
        spec=spec_of("negatives/{published}/{topics}"),
    shell:
        f"{MAKE} negatives_from_dataset" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule merged_negatives:
    """Merge BM25's negatives with those that a model mined."""
    input:
        manifests("negatives/{merged}/{topics}", "bm25", "mined"),
    output:
        manifest="results/negatives/{merged}/{topics}/manifest.json",
    log:
        "results/logs/merged_negatives/{merged}/{topics}.log",
    localrule: EXECUTION.local_scores
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **at_least("negatives/{merged}/{topics}", mem_mb=2_000, runtime=30),
        about=about_of("negatives/{merged}/{topics}"),
    params:
        spec=spec_of("negatives/{merged}/{topics}"),
    shell:
        f"{MAKE} merged_negatives" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule teacher_scores:
    """Score what students will learn from with their teacher, or convert published scores to the same files."""
    input:
        manifests("teachers/{teacher}/{topics}", "model", "run", "tokens", "collection", "negatives", "fetched"),
        large_files("teachers/{teacher}/{topics}", model="model.safetensors"),
    output:
        manifest="results/teachers/{teacher}/{topics}/manifest.json",
    log:
        "results/logs/teacher_scores/{teacher}/{topics}.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of("teacher_scores")
    resources:
        **at_least("teachers/{teacher}/{topics}", mem_mb=8_000, runtime=4 * 60),
        about=about_of("teachers/{teacher}/{topics}"),
    params:
        spec=spec_of("teachers/{teacher}/{topics}"),
    shell:
        f"{MAKE} teacher_scores" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule finetune:
    """Train on judged queries with negatives, from the weights that the step goes on from."""
    input:
        manifests(
            "models/{finetuned}", "tokens", "collection", "negatives", "teacher*", "weights", "shard*", "clusterer"
        ),
        large_files("models/{finetuned}", weights="model.safetensors", shard="index", clusterer="model.safetensors"),
    output:
        model="results/models/{finetuned}/model.safetensors",
        manifest="results/models/{finetuned}/manifest.json",
    log:
        "results/logs/finetune/{finetuned}.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of_training("finetune", "models/{finetuned}")
    resources:
        **at_least_where_it_resumes("models/{finetuned}", mem_mb=8_000, runtime=8 * 60),
        processes=processes_of("models/{finetuned}"),
        cpus_per_task=cores_of_training("finetune", "models/{finetuned}"),
        about=about_of("models/{finetuned}"),
    params:
        spec=spec_of("models/{finetuned}"),
    shell:
        f"{MAKE} finetune"
        " --planned {params.spec:q} --processes {resources.processes}"
        " --output {output.manifest:q} > {log:q} 2>&1"

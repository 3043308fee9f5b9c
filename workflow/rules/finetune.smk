"""Models after judged queries: negatives drawn from a run, what teachers say of them, and fine-tuning steps."""


rule negatives:
    """Draw negatives for training queries from a run, never a judged document."""
    input:
        run=made_from("results/negatives/{system}/{topics}", "run"),
        collection=made_from("results/negatives/{system}/{topics}", "collection"),
        other=made_from("results/negatives/{system}/{topics}", "other"),
    output:
        manifest="results/negatives/{system}/{topics}/manifest.json",
    log:
        "results/logs/negatives/{system}/{topics}.log",
    benchmark:
        "results/benchmarks/negatives/{system}/{topics}.tsv"
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory("results/negatives/{system}/{topics}", 2_000),
        runtime=minutes("results/negatives/{system}/{topics}", 30),
    params:
        spec=spec_of("results/negatives/{system}/{topics}"),
    shell:
        "python workflow/scripts/negatives.py"
        " --spec {params.spec:q}"
        " --run {input.run:q}"
        " --collection {input.collection:q}"
        " --other {input.other:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule negatives_from_file:
    """Draw negatives for training queries from a file in which others have listed them."""
    input:
        source=ancient(source_of("results/negatives/{listed}/{topics}")),
        fetched=made_from("results/negatives/{listed}/{topics}", "fetched"),
        collection=made_from("results/negatives/{listed}/{topics}", "collection"),
    output:
        manifest="results/negatives/{listed}/{topics}/manifest.json",
    log:
        "results/logs/negatives_from_file/{listed}/{topics}.log",
    benchmark:
        "results/benchmarks/negatives_from_file/{listed}/{topics}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory("results/negatives/{listed}/{topics}", 8_000),
        runtime=minutes("results/negatives/{listed}/{topics}", 4 * 60),
    params:
        spec=spec_of("results/negatives/{listed}/{topics}"),
    shell:
        "python workflow/scripts/negatives_from_file.py"
        " --spec {params.spec:q}"
        " --source {input.source:q}"
        " --fetched {input.fetched:q}"
        " --collection {input.collection:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule negatives_from_dataset:
    """Draw negatives for training queries from those that a collection was published with."""
    input:
        collection=made_from("results/negatives/{published}/{topics}", "collection"),
    output:
        manifest="results/negatives/{published}/{topics}/manifest.json",
    log:
        "results/logs/negatives_from_dataset/{published}/{topics}.log",
    benchmark:
        "results/benchmarks/negatives_from_dataset/{published}/{topics}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(8_000),
        runtime=escalate(4 * 60),
    params:
        spec=spec_of("results/negatives/{published}/{topics}"),
    shell:
        "python workflow/scripts/negatives_from_dataset.py"
        " --spec {params.spec:q}"
        " --collection {input.collection:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule merged_negatives:
    """Put BM25's negatives and those that a model mined together."""
    input:
        bm25=made_from("results/negatives/{merged}/{topics}", "bm25"),
        mined=made_from("results/negatives/{merged}/{topics}", "mined"),
    output:
        manifest="results/negatives/{merged}/{topics}/manifest.json",
    log:
        "results/logs/merged_negatives/{merged}/{topics}.log",
    benchmark:
        "results/benchmarks/merged_negatives/{merged}/{topics}.tsv"
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory("results/negatives/{merged}/{topics}", 2_000),
        runtime=minutes("results/negatives/{merged}/{topics}", 30),
    params:
        spec=spec_of("results/negatives/{merged}/{topics}"),
    shell:
        "python workflow/scripts/merged_negatives.py"
        " --spec {params.spec:q}"
        " --bm25 {input.bm25:q}"
        " --mined {input.mined:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule teacher_scores:
    """Score what students will learn from with their teacher, or convert published scores to the same files."""
    input:
        model=made_from("results/teachers/{teacher}/{topics}", "model"),
        weights=ancient(made_from("results/teachers/{teacher}/{topics}", "model", "model.safetensors")),
        tokens=made_from("results/teachers/{teacher}/{topics}", "tokens"),
        collection=made_from("results/teachers/{teacher}/{topics}", "collection"),
        negatives=made_from("results/teachers/{teacher}/{topics}", "negatives"),
        source=ancient(source_of("results/teachers/{teacher}/{topics}")),
        fetched=made_from("results/teachers/{teacher}/{topics}", "fetched"),
    output:
        manifest="results/teachers/{teacher}/{topics}/manifest.json",
    log:
        "results/logs/teacher_scores/{teacher}/{topics}.log",
    benchmark:
        "results/benchmarks/teacher_scores/{teacher}/{topics}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory("results/teachers/{teacher}/{topics}", 8_000),
        runtime=minutes("results/teachers/{teacher}/{topics}", 4 * 60),
        checkpoint_s=PLAN.config.execution.checkpoint_seconds,
    params:
        spec=spec_of("results/teachers/{teacher}/{topics}"),
    shell:
        "python workflow/scripts/teacher_scores.py"
        " --spec {params.spec:q}"
        " --model {input.model:q}"
        " --tokens {input.tokens:q}"
        " --collection {input.collection:q}"
        " --negatives {input.negatives:q}"
        " --source {input.source:q}"
        " --fetched {input.fetched:q}"
        " --state results/state/{wildcards.teacher:q}/{wildcards.topics:q}"
        " --checkpoint-seconds {resources.checkpoint_s}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule finetune:
    """Train on judged queries with negatives, from the weights that the step goes on from."""
    input:
        tokens=made_from("results/models/{finetuned}", "tokens"),
        collection=made_from("results/models/{finetuned}", "collection"),
        negatives=made_from("results/models/{finetuned}", "negatives"),
        teachers=each_of("results/models/{finetuned}", "teacher"),
        weights=made_from("results/models/{finetuned}", "weights"),
        model=ancient(made_from("results/models/{finetuned}", "weights", "model.safetensors")),
    output:
        model="results/models/{finetuned}/model.safetensors",
        manifest="results/models/{finetuned}/manifest.json",
    log:
        "results/logs/finetune/{finetuned}.log",
    benchmark:
        "results/benchmarks/finetune/{finetuned}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: PLAN.config.execution.processes
    resources:
        mem_mb=memory("results/models/{finetuned}", 8_000),
        runtime=minutes("results/models/{finetuned}", 8 * 60),
        checkpoint_s=PLAN.config.execution.checkpoint_seconds,
    params:
        spec=spec_of("results/models/{finetuned}"),
    shell:
        "python workflow/scripts/finetune.py"
        " --spec {params.spec:q}"
        " --tokens {input.tokens:q}"
        " --collection {input.collection:q}"
        " --weights {input.weights:q}"
        " --negatives {input.negatives:q}"
        " --teachers {input.teachers:q}"
        " --state results/state/{wildcards.finetuned:q}"
        " --processes {threads}"
        " --checkpoint-seconds {resources.checkpoint_s}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"

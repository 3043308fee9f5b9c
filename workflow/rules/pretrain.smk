"""Pre-trained models: a backbone's start, and pre-training steps.

Inputs come from the plan, by role: src/encore/plan/artifacts/models.py says which folder each role is.
"""


rule start:
    """Make the model that a lineage starts from: random weights, LSA embeddings, a checkpoint, or a trained model."""
    input:
        manifests("models/{start}", "tokenizer", "tokens", "checkpoint", "pretrained"),
    output:
        model="results/models/{start}/model.safetensors",
        manifest="results/models/{start}/manifest.json",
    log:
        "results/logs/start/{start}.log",
    conda:
        "../../envs/environment.yaml"
    threads: NUMERICS.threads
    resources:
        **by_attempt(mem_mb=4_000, runtime=30),
        about=about_of("models/{start}"),
    params:
        spec=spec_of("models/{start}"),
    shell:
        f"{MAKE} start" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule attend:
    """Read the texts that an objective trains on with the parent model, for what it attends to in them (B-PROP)."""
    input:
        manifests("attention/{attention}", "tokens", "weights"),
        large_files("attention/{attention}", weights="model.safetensors"),
    output:
        manifest="results/attention/{attention}/manifest.json",
    log:
        "results/logs/attend/{attention}.log",
    conda:
        "../../envs/environment.yaml"
    threads: EXECUTION.processes
    resources:
        **at_least_where_it_resumes("attention/{attention}", mem_mb=8_000, runtime=4 * 60),
        about=about_of("attention/{attention}"),
    params:
        spec=spec_of("attention/{attention}"),
    shell:
        f"{MAKE} attend" " --planned {params.spec:q} --processes {threads} --output {output.manifest:q} > {log:q} 2>&1"


rule prepare:
    """Compute what an objective needs of a collection before any training: document frequencies, word sets."""
    input:
        manifests("prepared/{prepared}", "tokens", "attention"),
    output:
        manifest="results/prepared/{prepared}/manifest.json",
    log:
        "results/logs/prepare/{prepared}.log",
    conda:
        "../../envs/environment.yaml"
    threads: EXECUTION.preprocessing_cores
    resources:
        **at_least("prepared/{prepared}", mem_mb=4_000 + 1_000 * EXECUTION.preprocessing_cores, runtime=4 * 60),
        about=about_of("prepared/{prepared}"),
    params:
        spec=spec_of("prepared/{prepared}"),
    shell:
        f"{MAKE} prepare" " --planned {params.spec:q} --threads {threads} --output {output.manifest:q} > {log:q} 2>&1"


rule pretrain:
    """Train one objective on text alone, from the parent lineage's weights."""
    input:
        manifests("models/{pretrained}", "tokens", "weights", "prepared"),
        large_files("models/{pretrained}", weights="model.safetensors"),
    output:
        model="results/models/{pretrained}/model.safetensors",
        manifest="results/models/{pretrained}/manifest.json",
    log:
        "results/logs/pretrain/{pretrained}.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of_training("pretrain", "models/{pretrained}")
    resources:
        **at_least_where_it_resumes("models/{pretrained}", mem_mb=8_000, runtime=24 * 60),
        processes=processes_of("models/{pretrained}"),
        cpus_per_task=cores_of_training("pretrain", "models/{pretrained}"),
        about=about_of("models/{pretrained}"),
    params:
        spec=spec_of("models/{pretrained}"),
    shell:
        f"{MAKE} pretrain"
        " --planned {params.spec:q} --processes {resources.processes}"
        " --output {output.manifest:q} > {log:q} 2>&1"

"""Pre-trained models: a backbone's start, and pre-training steps."""


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
        source=source_of("models/{start}"),
    params:
        spec=spec_of("models/{start}"),
    shell:
        f"{PROGRAM}start.py"
        " --spec {params.spec:q}"
        " --tokenizer {input.tokenizer:q}"
        " --tokens {input.tokens:q}"
        " --checkpoint {input.checkpoint:q}"
        " --source {resources.source}"
        " --pretrained {input.pretrained:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


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
    params:
        spec=spec_of("attention/{attention}"),
    shell:
        f"{PROGRAM}attend.py"
        " --spec {params.spec:q}"
        " --tokens {input.tokens:q}"
        " --weights {input.weights:q}"
        " --state results/state/{wildcards.attention:q}"
        " --processes {threads}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


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
    params:
        spec=spec_of("prepared/{prepared}"),
    shell:
        f"{PROGRAM}prepare.py"
        " --spec {params.spec:q}"
        " --tokens {input.tokens:q}"
        " --attention {input.attention:q}"
        " --processes {threads}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


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
        cpus_per_task=cores_of_training("models/{pretrained}"),
    params:
        spec=spec_of("models/{pretrained}"),
    shell:
        f"{PROGRAM}pretrain.py"
        " --spec {params.spec:q}"
        " --tokens {input.tokens:q}"
        " --weights {input.weights:q}"
        " --prepared {input.prepared:q}"
        " --state results/state/{wildcards.pretrained:q}"
        " --processes {resources.processes}"
        ' --workers "$ENCORE_WORKERS"'
        ' --checkpoint-seconds "$ENCORE_CHECKPOINT_SECONDS"'
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"

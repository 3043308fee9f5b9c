"""Models before any judged query: a backbone's start, and pre-training steps."""


rule start:
    """Make the model that a lineage starts from: random weights, LSA embeddings, or a checkpoint."""
    input:
        source=ancient(source_of("results/models/{start}")),
        tokenizer=made_from("results/models/{start}", "tokenizer"),
        tokens=made_from("results/models/{start}", "tokens"),
        checkpoint=made_from("results/models/{start}", "checkpoint"),
    output:
        model="results/models/{start}/model.safetensors",
        manifest="results/models/{start}/manifest.json",
    log:
        "results/logs/start/{start}.log",
    benchmark:
        "results/benchmarks/start/{start}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(4_000),
        runtime=escalate(30),
    params:
        spec=spec_of("results/models/{start}"),
    shell:
        "python workflow/scripts/start.py"
        " --spec {params.spec:q}"
        " --tokenizer {input.tokenizer:q}"
        " --tokens {input.tokens:q}"
        " --checkpoint {input.checkpoint:q}"
        " --source {input.source:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule prepare:
    """Compute what an objective needs of a collection before any training: document frequencies, word sets.

    B-PROP's reads all texts with the parent model, on a GPU where there is one, or on as many as trainings have.
    """
    input:
        tokens=made_from("results/prepared/{prepared}", "tokens"),
        weights=made_from("results/prepared/{prepared}", "weights"),
    output:
        manifest="results/prepared/{prepared}/manifest.json",
    log:
        "results/logs/prepare/{prepared}.log",
    benchmark:
        "results/benchmarks/prepare/{prepared}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: lambda wildcards, input: PLAN.config.execution.processes if input.weights else 1
    resources:
        mem_mb=memory("results/prepared/{prepared}", 8_000),
        runtime=minutes("results/prepared/{prepared}", 4 * 60),
    params:
        spec=spec_of("results/prepared/{prepared}"),
    shell:
        "python workflow/scripts/prepare.py"
        " --spec {params.spec:q}"
        " --tokens {input.tokens:q}"
        " --weights {input.weights:q}"
        " --state results/state/{wildcards.prepared:q}"
        " --processes {threads}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule pretrain:
    """Train one objective on text alone, from the parent lineage's weights."""
    input:
        tokens=made_from("results/models/{pretrained}", "tokens"),
        weights=made_from("results/models/{pretrained}", "weights"),
        model=ancient(made_from("results/models/{pretrained}", "weights", "model.safetensors")),
        prepared=made_from("results/models/{pretrained}", "prepared"),
    output:
        model="results/models/{pretrained}/model.safetensors",
        manifest="results/models/{pretrained}/manifest.json",
    log:
        "results/logs/pretrain/{pretrained}.log",
    benchmark:
        "results/benchmarks/pretrain/{pretrained}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: PLAN.config.execution.processes
    resources:
        mem_mb=memory("results/models/{pretrained}", 8_000),
        runtime=minutes("results/models/{pretrained}", 24 * 60),
        checkpoint_s=PLAN.config.execution.checkpoint_seconds,
    params:
        spec=spec_of("results/models/{pretrained}"),
    shell:
        "python workflow/scripts/pretrain.py"
        " --spec {params.spec:q}"
        " --tokens {input.tokens:q}"
        " --weights {input.weights:q}"
        " --prepared {input.prepared:q}"
        " --state results/state/{wildcards.pretrained:q}"
        " --processes {threads}"
        " --checkpoint-seconds {resources.checkpoint_s}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"

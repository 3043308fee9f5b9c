"""What is searched: Lucene's index of a collection, and shards of a model's vectors."""


rule lucene_index:
    """Index a collection with Lucene."""
    input:
        collection=made_from("results/indexes/lucene/{index}", "collection"),
        predicted_queries=made_from("results/indexes/lucene/{index}", "predicted_queries"),
    output:
        manifest="results/indexes/lucene/{index}/manifest.json",
    log:
        "results/logs/lucene_index/{index}.log",
    benchmark:
        "results/benchmarks/lucene_index/{index}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory("results/indexes/lucene/{index}", PLAN.config.execution.java_memory_mb + 1_000),
        runtime=minutes("results/indexes/lucene/{index}", 60),
        java_mb=PLAN.config.execution.java_memory_mb,
    params:
        spec=spec_of("results/indexes/lucene/{index}"),
    shell:
        "python workflow/scripts/lucene_index.py"
        " --spec {params.spec:q}"
        " --collection {input.collection:q}"
        " --predicted-queries {input.predicted_queries:q}"
        " --memory-mb {resources.java_mb}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule encode:
    """Encode one shard of a collection and index its vectors with FAISS."""
    input:
        model=made_from("results/indexes/{model}/{index}/{shard}", "model"),
        weights=ancient(made_from("results/indexes/{model}/{index}/{shard}", "model", "model.safetensors")),
        tokens=made_from("results/indexes/{model}/{index}/{shard}", "tokens"),
    output:
        index="results/indexes/{model}/{index}/{shard}/index",
        manifest="results/indexes/{model}/{index}/{shard}/manifest.json",
    log:
        "results/logs/encode/{model}/{index}/{shard}.log",
    benchmark:
        "results/benchmarks/encode/{model}/{index}/{shard}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory("results/indexes/{model}/{index}/{shard}", 4_000),
        runtime=minutes("results/indexes/{model}/{index}/{shard}", 2 * 60),
    params:
        spec=spec_of("results/indexes/{model}/{index}/{shard}"),
    shell:
        "python workflow/scripts/encode.py"
        " --spec {params.spec:q}"
        " --model {input.model:q}"
        " --tokens {input.tokens:q}"
        " --shard {wildcards.shard:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"

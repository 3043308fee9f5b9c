"""What is searched: Lucene's index of a collection, and shards of a model's vectors.

Inputs come from the plan, by role: src/encore/plan/artifacts/systems.py says which folder each role is.
"""


rule lucene_index:
    """Index a collection with Lucene."""
    input:
        manifests("indexes/lucene/{index}", "collection", "predicted_queries"),
    output:
        manifest="results/indexes/lucene/{index}/manifest.json",
    log:
        "results/logs/lucene_index/{index}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **at_least("indexes/lucene/{index}", mem_mb=EXECUTION.java_memory_mb + 1_000, runtime=60),
        about=about_of("indexes/lucene/{index}"),
    params:
        spec=spec_of("indexes/lucene/{index}"),
    shell:
        f"{MAKE} lucene_index" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule encode:
    """Encode one shard of a collection and index its vectors with FAISS."""
    input:
        manifests("indexes/{model}/{index}/{shard}", "model", "tokens"),
        large_files("indexes/{model}/{index}/{shard}", model="model.safetensors"),
    output:
        index="results/indexes/{model}/{index}/{shard}/index",
        manifest="results/indexes/{model}/{index}/{shard}/manifest.json",
    log:
        "results/logs/encode/{model}/{index}/{shard}.log",
    conda:
        "../../envs/environment.yaml"
    threads: threads_of("encode")
    resources:
        **at_least("indexes/{model}/{index}/{shard}", mem_mb=4_000, runtime=2 * 60),
        about=about_of("indexes/{model}/{index}/{shard}"),
    params:
        spec=spec_of("indexes/{model}/{index}/{shard}"),
    shell:
        f"{MAKE} encode" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"

"""Indexes of named types, built of the exact shards, and search in them."""


rule build_index:
    """Gather a collection's shards into one index of a named type."""
    input:
        shards=shards_of("results/indexes/{indexed}/{index}"),
        vectors=ancient(shards_of("results/indexes/{indexed}/{index}", "index")),
    output:
        index="results/indexes/{indexed}/{index}/index",
        manifest="results/indexes/{indexed}/{index}/manifest.json",
    log:
        "results/logs/build_index/{indexed}/{index}.log",
    benchmark:
        "results/benchmarks/build_index/{indexed}/{index}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory("results/indexes/{indexed}/{index}", 4_000),
        runtime=minutes("results/indexes/{indexed}/{index}", 4 * 60),
    params:
        spec=spec_of("results/indexes/{indexed}/{index}"),
    shell:
        "python workflow/scripts/build_index.py"
        " --spec {params.spec:q}"
        " --shards {input.shards:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule search_index:
    """Rank passages by what an index of a named type finds, and measure its recall of the exact answer."""
    input:
        model=made_from("results/runs/{indexed}/{topics}", "model"),
        weights=ancient(made_from("results/runs/{indexed}/{topics}", "model", "model.safetensors")),
        tokens=made_from("results/runs/{indexed}/{topics}", "tokens"),
        collection=made_from("results/runs/{indexed}/{topics}", "collection"),
        index=made_from("results/runs/{indexed}/{topics}", "index"),
        vectors=ancient(made_from("results/runs/{indexed}/{topics}", "index", "index")),
        exact=made_from("results/runs/{indexed}/{topics}", "exact"),
        ranking=ancient(made_from("results/runs/{indexed}/{topics}", "exact", "run.trec.gz")),
    output:
        run="results/runs/{indexed}/{topics}/run.trec.gz",
        manifest="results/runs/{indexed}/{topics}/manifest.json",
    log:
        "results/logs/search_index/{indexed}/{topics}.log",
    benchmark:
        "results/benchmarks/search_index/{indexed}/{topics}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=memory("results/runs/{indexed}/{topics}", 4_000),
        runtime=minutes("results/runs/{indexed}/{topics}", 2 * 60),
    params:
        spec=spec_of("results/runs/{indexed}/{topics}"),
    shell:
        "python workflow/scripts/search_index.py"
        " --spec {params.spec:q}"
        " --model {input.model:q}"
        " --tokens {input.tokens:q}"
        " --collection {input.collection:q}"
        " --index {input.index:q}"
        " --exact {input.exact:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"

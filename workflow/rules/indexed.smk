"""Indexes of named types, built of the exact shards, and search in them.

Inputs come from the plan, by role: src/encore/plan/artifacts/systems.py says which folder each role is.
"""


rule build_index:
    """Gather a collection's shards into one index of a named type."""
    input:
        manifests("indexes/{indexed}/{index}", "shard*"),
        large_files("indexes/{indexed}/{index}", shard="index"),
    output:
        index="results/indexes/{indexed}/{index}/index",
        manifest="results/indexes/{indexed}/{index}/manifest.json",
    log:
        "results/logs/build_index/{indexed}/{index}.log",
    priority: 1  # before further vectors are made
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **at_least("indexes/{indexed}/{index}", mem_mb=4_000, runtime=4 * 60),
        about=about_of("indexes/{indexed}/{index}"),
    params:
        spec=spec_of("indexes/{indexed}/{index}"),
    shell:
        f"{LARGE_PAGES}{MAKE} build_index" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"


rule search_index:
    """Rank passages by what an index of a named type finds, and measure its recall of the exact answer."""
    input:
        manifests("runs/{indexed}/{topics}", "model", "tokens", "collection", "index", "exact"),
        large_files("runs/{indexed}/{topics}", model="model.safetensors", index="index", exact="run.npz"),
    output:
        run="results/runs/{indexed}/{topics}/run.npz",
        manifest="results/runs/{indexed}/{topics}/manifest.json",
    log:
        "results/logs/search_index/{indexed}/{topics}.log",
    conda:
        "../../envs/environment.yaml"
    threads: NUMERICS.threads  # FAISS searches most types on processors
    resources:
        **at_least("runs/{indexed}/{topics}", mem_mb=4_000, runtime=2 * 60),
        about=about_of("runs/{indexed}/{topics}"),
    params:
        spec=spec_of("runs/{indexed}/{topics}"),
    shell:
        f"{MAKE} search_index" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"

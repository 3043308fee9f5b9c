"""Retrieval from a growing collection: the order in which it grows. Search and scores have their usual rules."""


rule nested_corpora:
    """Order a collection: what is relevant and what BM25 ranks high first, the rest at random."""
    input:
        manifests("subsets/{subset}", "run", "collection"),
    output:
        manifest="results/subsets/{subset}/manifest.json",
    log:
        "results/logs/nested_corpora/{subset}.log",
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        **by_attempt(mem_mb=4_000, runtime=60),
        about=about_of("subsets/{subset}"),
    params:
        spec=spec_of("subsets/{subset}"),
    shell:
        f"{MAKE} nested_corpora" " --planned {params.spec:q} --output {output.manifest:q} > {log:q} 2>&1"

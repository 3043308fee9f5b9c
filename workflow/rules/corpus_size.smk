"""Retrieval from a growing collection: the order in which it grows, and the figure; search and scores are the usual."""


rule nested_corpora:
    """Order a collection: what is relevant and what BM25 ranks high first, the rest at random."""
    input:
        run=made_from("results/subsets/{subset}", "run"),
        collection=made_from("results/subsets/{subset}", "collection"),
    output:
        manifest="results/subsets/{subset}/manifest.json",
    log:
        "results/logs/nested_corpora/{subset}.log",
    benchmark:
        "results/benchmarks/nested_corpora/{subset}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(4_000),
        runtime=escalate(60),
    params:
        spec=spec_of("results/subsets/{subset}"),
    shell:
        "python workflow/scripts/nested_corpora.py"
        " --spec {params.spec:q}"
        " --run {input.run:q}"
        " --collection {input.collection:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule corpus_size:
    """Draw how retrieval falls as the collection grows."""
    input:
        plan="results/plan/{corpus_size}.json",
        scores=scores_of_growing,
    output:
        png=report(
            "results/figures/{corpus_size}.png",
            category="Figures",
            labels={"figure": "{corpus_size}"},
            caption="../report/corpus_size.rst",
        ),
        svg="results/figures/{corpus_size}.svg",
        csv="results/figures/{corpus_size}.csv",
        manifest="results/figures/{corpus_size}.manifest.json",
    log:
        "results/logs/corpus_size/{corpus_size}.log",
    benchmark:
        "results/benchmarks/corpus_size/{corpus_size}.tsv"
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(2_000),
        runtime=escalate(30),
    params:
        spec=growing_spec,
    shell:
        "python workflow/scripts/corpus_size.py"
        " --plan {input.plan:q}"
        " --spec {params.spec:q}"
        " --output $(dirname {output.png:q})"
        " > {log:q} 2>&1"

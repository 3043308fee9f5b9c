"""Retrieval from a growing collection: the order in which it grows, and the figure; search and scores are the usual."""


rule grow:
    """Order a collection: what is relevant and what BM25 ranks high first, the rest at random."""
    input:
        run=made_from("results/subsets/{subset}", "run"),
        collection=made_from("results/subsets/{subset}", "collection"),
    output:
        manifest="results/subsets/{subset}/manifest.json",
    log:
        "results/logs/grow/{subset}.log",
    benchmark:
        "results/benchmarks/grow/{subset}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(4_000),
        runtime=escalate(60),
    params:
        spec=spec_of("results/subsets/{subset}"),
    shell:
        "python workflow/scripts/grow.py"
        " --spec {params.spec:q}"
        " --run {input.run:q}"
        " --collection {input.collection:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule growing:
    """Draw how retrieval falls as the collection grows."""
    input:
        plan="results/plan/{growing}.json",
        scores=scores_of_growing,
    output:
        png=report(
            "results/figures/{growing}.png",
            category="Figures",
            labels={"figure": "{growing}"},
            caption="../report/growing.rst",
        ),
        svg="results/figures/{growing}.svg",
        csv="results/figures/{growing}.csv",
        manifest="results/figures/{growing}.manifest.json",
    log:
        "results/logs/growing/{growing}.log",
    benchmark:
        "results/benchmarks/growing/{growing}.tsv"
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
        "python workflow/scripts/growing.py"
        " --plan {input.plan:q}"
        " --spec {params.spec:q}"
        " --output $(dirname {output.png:q})"
        " > {log:q} 2>&1"

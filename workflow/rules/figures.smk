"""The papers' figures and our own: what some look into models for, and the drawing of each from its slice of the plan."""


rule probe:
    """Ask a model about a few texts, for a figure that shows what it says."""
    input:
        model=made_from("results/probes/{model}/{probe}", "model"),
        weights=ancient(made_from("results/probes/{model}/{probe}", "model", "model.safetensors")),
        tokens=made_from("results/probes/{model}/{probe}", "tokens"),
        head=made_from("results/probes/{model}/{probe}", "head"),
        run=made_from("results/probes/{model}/{probe}", "run"),
        collection=made_from("results/probes/{model}/{probe}", "collection"),
    output:
        probe="results/probes/{model}/{probe}/probe.json",
        manifest="results/probes/{model}/{probe}/manifest.json",
    log:
        "results/logs/probe/{model}/{probe}.log",
    benchmark:
        "results/benchmarks/probe/{model}/{probe}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(4_000),
        runtime=escalate(60),
    params:
        spec=spec_of("results/probes/{model}/{probe}"),
    shell:
        "python workflow/scripts/probe.py"
        " --spec {params.spec:q}"
        " --model {input.model:q}"
        " --tokens {input.tokens:q}"
        " --head {input.head:q}"
        " --run {input.run:q}"
        " --collection {input.collection:q}"
        " --output {output.manifest:q}"
        " > {log:q} 2>&1"


rule draw:
    """Draw a figure of the catalogue."""
    input:
        plan="results/plan/{figure}.json",
        reads=reads_of_figure,
    output:
        png=report(
            "results/figures/{figure}.png",
            category="Figures",
            labels={"figure": "{figure}"},
            caption="../report/draw.rst",
        ),
        svg="results/figures/{figure}.svg",
        csv="results/figures/{figure}.csv",
        manifest="results/figures/{figure}.manifest.json",
    log:
        "results/logs/draw/{figure}.log",
    benchmark:
        "results/benchmarks/draw/{figure}.tsv"
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(2_000),
        runtime=escalate(30),
    params:
        spec=figure_spec,
    shell:
        "python workflow/scripts/draw.py"
        " --plan {input.plan:q}"
        " --spec {params.spec:q}"
        " --output $(dirname {output.png:q})"
        " > {log:q} 2>&1"

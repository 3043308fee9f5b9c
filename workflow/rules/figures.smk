"""The papers' figures and our own: what some look into models for, and the drawing of each from its slice of the plan."""


rule inspect_model:
    """Ask a model about a few texts, for a figure that shows what it says."""
    input:
        model=made_from("results/inspections/{model}/{inspection}", "model"),
        weights=ancient(made_from("results/inspections/{model}/{inspection}", "model", "model.safetensors")),
        tokens=made_from("results/inspections/{model}/{inspection}", "tokens"),
        head=made_from("results/inspections/{model}/{inspection}", "head"),
        run=made_from("results/inspections/{model}/{inspection}", "run"),
        collection=made_from("results/inspections/{model}/{inspection}", "collection"),
    output:
        inspection="results/inspections/{model}/{inspection}/inspection.json",
        manifest="results/inspections/{model}/{inspection}/manifest.json",
    log:
        "results/logs/inspect_model/{model}/{inspection}.log",
    benchmark:
        "results/benchmarks/inspect_model/{model}/{inspection}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(4_000),
        runtime=escalate(60),
    params:
        spec=spec_of("results/inspections/{model}/{inspection}"),
    shell:
        "python workflow/scripts/inspect_model.py"
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

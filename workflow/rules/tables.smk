"""Tables and figures, each from its slice of the plan (written when the workflow is parsed) and what that names."""


rule table:
    """Join scores, reported numbers and tests into a table, in four formats."""
    input:
        plan="results/plan/{table}.json",
        scores=scores_of_table,
        reproduction=reproduction_of_table,
    output:
        csv=report(
            "results/tables/{table}.csv",
            category="Tables",
            labels={"table": "{table}"},
            caption="../report/table.rst",
        ),
        markdown="results/tables/{table}.md",
        latex="results/tables/{table}.tex",
        html="results/tables/{table}.html",
        manifest="results/tables/{table}.manifest.json",
    log:
        "results/logs/table/{table}.log",
    benchmark:
        "results/benchmarks/table/{table}.tsv"
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(2_000),
        runtime=escalate(30),
    params:
        spec=table_spec,
    shell:
        "python workflow/scripts/table.py"
        " --plan {input.plan:q}"
        " --spec {params.spec:q}"
        " --output $(dirname {output.csv:q})"
        " > {log:q} 2>&1"


rule reproduce:
    """Compare a table's runs with those that others released, which the run's configuration names."""
    input:
        plan="results/plan/{table}.json",
        reads=reads_of_references,
        released=released_runs,
    output:
        csv="results/tables/{table}.reproduction.csv",
        manifest="results/tables/{table}.reproduction.manifest.json",
    log:
        "results/logs/reproduce/{table}.log",
    benchmark:
        "results/benchmarks/reproduce/{table}.tsv"
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(8_000),
        runtime=escalate(120),
    params:
        spec=table_spec,
    shell:
        "python workflow/scripts/reproduce.py"
        " --plan {input.plan:q}"
        " --spec {params.spec:q}"
        " --output $(dirname {output.csv:q})"
        " > {log:q} 2>&1"


rule figure:
    """Draw a table's differences to the control with their intervals."""
    input:
        plan="results/plan/{table}.json",
        scores=scores_of_table,
    output:
        png=report(
            "results/figures/{table}.png",
            category="Figures",
            labels={"figure": "{table}"},
            caption="../report/figure.rst",
        ),
        svg="results/figures/{table}.svg",
        csv="results/figures/{table}.csv",
        manifest="results/figures/{table}.manifest.json",
    log:
        "results/logs/figure/{table}.log",
    benchmark:
        "results/benchmarks/figure/{table}.tsv"
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(2_000),
        runtime=escalate(30),
    params:
        spec=table_spec,
    shell:
        "python workflow/scripts/figure.py"
        " --plan {input.plan:q}"
        " --spec {params.spec:q}"
        " --output $(dirname {output.png:q})"
        " > {log:q} 2>&1"


rule curves:
    """Draw how every pre-training step's losses on held-out texts fell."""
    input:
        plan="results/plan/{curves}.json",
        models=models_of_curves,
    output:
        png=report(
            "results/figures/{curves}.png",
            category="Figures",
            labels={"figure": "{curves}"},
            caption="../report/curves.rst",
        ),
        svg="results/figures/{curves}.svg",
        csv="results/figures/{curves}.csv",
        manifest="results/figures/{curves}.manifest.json",
    log:
        "results/logs/curves/{curves}.log",
    benchmark:
        "results/benchmarks/curves/{curves}.tsv"
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(2_000),
        runtime=escalate(30),
    params:
        spec=curves_spec,
    shell:
        "python workflow/scripts/curves.py"
        " --plan {input.plan:q}"
        " --spec {params.spec:q}"
        " --output $(dirname {output.png:q})"
        " > {log:q} 2>&1"

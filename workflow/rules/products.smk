"""Products: tables, figures, claims and the report, each from its slice of the plan and the artifacts that it names."""

for product in PRODUCTS:

    rule:
        """Make a table, a figure, the claims or the report from its slice of the plan and what that names."""
        name:
            product.rule
        input:
            program=ancient(f"workflow/scripts/{product.rule}.py"),
            plan=plan_of(product),
            reads=reads_of(product),
        output:
            *files_of(product),
            manifest=product.record,
        log:
            f"results/logs/{product.rule}/{product.called}.log",
        benchmark:
            f"results/benchmarks/{product.rule}/{product.called}.tsv"
        localrule: True
        conda:
            "../../envs/environment.yaml"
        threads: 1
        resources:
            **by_attempt(mem_mb=product.memory_mb, runtime=product.minutes),
        params:
            spec=digest_of(product),
        shell:
            "python {input.program:q}"
            " --plan {input.plan:q}"
            " --spec {params.spec:q}"
            " --output $(dirname {output.manifest:q})"
            " > {log:q} 2>&1"


rule reproduce:
    """Compare a table's runs with released ones, which the run's configuration names."""
    input:
        plan=plan_of(TABLE),
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
        **by_attempt(mem_mb=8_000, runtime=120),
    params:
        spec=digest_of(TABLE),
    shell:
        "python workflow/scripts/reproduce.py"
        " --plan {input.plan:q}"
        " --spec {params.spec:q}"
        " --output $(dirname {output.csv:q})"
        " > {log:q} 2>&1"

"""Claims: what each says of the papers' printed numbers, and of what was run."""


rule claims_printed:
    """Judge every claim by the papers' own printed numbers, without any run."""
    input:
        plan="results/plan/claims_printed.json",
    output:
        csv=report(
            "results/claims_printed.csv",
            category="Claims",
            caption="../report/claims_printed.rst",
        ),
        page="results/claims_printed.md",
        manifest="results/claims_printed.manifest.json",
    log:
        "results/logs/claims_printed/claims_printed.log",
    benchmark:
        "results/benchmarks/claims_printed/claims_printed.tsv"
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(1_000),
        runtime=escalate(10),
    params:
        spec=printed_spec,
    shell:
        "python workflow/scripts/claims_printed.py"
        " --plan {input.plan:q}"
        " --spec {params.spec:q}"
        " --output $(dirname {output.csv:q})"
        " > {log:q} 2>&1"


rule claims:
    """Judge every claim by the runs behind the tables that it is about."""
    input:
        plan="results/plan/claims.json",
        reads=reads_of_claims,
    output:
        csv=report(
            "results/claims.csv",
            category="Claims",
            caption="../report/claims.rst",
        ),
        page="results/claims.md",
        manifest="results/claims.manifest.json",
    log:
        "results/logs/claims/claims.log",
    benchmark:
        "results/benchmarks/claims/claims.tsv"
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(4_000),
        runtime=escalate(30),
    params:
        spec=claims_spec,
    shell:
        "python workflow/scripts/claims.py"
        " --plan {input.plan:q}"
        " --spec {params.spec:q}"
        " --output $(dirname {output.csv:q})"
        " > {log:q} 2>&1"

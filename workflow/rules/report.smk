"""The report: one page of all that was made, from its slice of the plan and the products that it shows."""


rule report:
    """Make the page of all tables, figures and claims, which works from disk."""
    input:
        plan="results/plan/report.json",
        products=products_of_report,
    output:
        html=report(
            "results/report/index.html",
            category="Report",
            labels={"page": "all tables, figures and claims"},
            caption="../report/report.rst",
        ),
        manifest="results/report/manifest.json",
    log:
        "results/logs/report/report.log",
    benchmark:
        "results/benchmarks/report/report.tsv"
    localrule: True
    conda:
        "../../envs/environment.yaml"
    threads: 1
    resources:
        mem_mb=escalate(2_000),
        runtime=escalate(30),
    params:
        spec=report_spec,
    shell:
        "python workflow/scripts/report.py"
        " --plan {input.plan:q}"
        " --spec {params.spec:q}"
        " --output $(dirname {output.html:q})"
        " > {log:q} 2>&1"

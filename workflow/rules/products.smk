"""Products: tables, figures, claims and the report, a rule for each kind in src/encore/products/kinds.py.

Inputs are a product's slice of the plan and the manifests of the folders that it names (slices.smk).
"""

for product in PRODUCTS:

    rule:
        """Make a table, a figure, the claims or the report from its slice of the plan and what that names."""
        name:
            product.rule
        input:
            program=ancient(f"{PROGRAMS}/make_product.py"),
            plan=plan_of(product),
            reads=reads_of(product),
        output:
            *files_of(product),
            manifest=product.record,
        log:
            f"results/logs/{product.rule}/{product.called}.log",
        localrule: True
        conda:
            "../../envs/environment.yaml"
        threads: 1
        resources:
            **by_attempt(mem_mb=product.memory_mb, runtime=product.minutes),
            product=product.rule,  # for the command: `product` is the last one when it is formatted
        params:
            spec=digest_of(product),
        shell:
            f"{JOB}{{input.program:q}} {{resources.product}}"
            " --plan {input.plan:q} --spec {params.spec:q} --output {output:q} > {log:q} 2>&1"

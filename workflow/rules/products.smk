"""What people look at: tables, figures, claims and the report, each from its slice of the plan and what that names."""

from encore.commands.products import PRODUCTS, TABLE
from encore.plan.figures.corpus_size import CORPUS_SIZE
from encore.plan.tables import CURVES, reference_folders, refuse_damaged, slice_digest
from encore.plan.tables.declared import plan_file, read_plan, write_plan
from encore.storage.files import canonical

OTHER_FIGURES = "|".join(map(re.escape, PLAN.catalogue.figures)) if PLAN else "-"
SLICES = {}


wildcard_constraints:
    table=rf"(?!(?:{CURVES}|{CORPUS_SIZE}|{OTHER_FIGURES})\.)[a-z0-9_/-]+",
    figure=rf"(?:{OTHER_FIGURES})" if PLAN else r"[a-z0-9_/-]+",


def slice_of(product, wildcards):
    """A product's slice of the plan; a cluster's job reads the file that was written when it was planned."""
    name = product.name(wildcards)
    if (product.rule, name) not in SLICES:
        planned = in_one_line(product.slice, PLAN, RUN_FILE, name) if PLAN else read_plan(name)
        SLICES[product.rule, name] = planned
    return SLICES[product.rule, name]


def plan_of(product):
    """The file of a product's slice of the plan, which is written where its bytes differ."""

    def path(wildcards):
        name = product.name(wildcards)
        return str(in_one_line(write_plan, name, slice_of(product, wildcards)) if PLAN else plan_file(name))

    return path


def reads_of(product):
    """What a product is made from."""

    def paths(wildcards):
        slice_of(product, wildcards)
        return in_one_line(product.reads, PLAN, RUN_FILE, product.name(wildcards))

    return paths


def digest_of(product):
    """The digest of a product's slice of the plan, which is its one param."""

    def spec(wildcards):
        return canonical(slice_digest(slice_of(product, wildcards)))

    return spec


def files_of(product):
    """A product's files, of which Snakemake's own report shows the first."""
    first, *others = product.files
    shown = {"category": product.category, "labels": product.labels, "caption": f"../report/{product.rule}.rst"}
    return [report(first, **shown), *others[:-1]]


for product in PRODUCTS:

    rule:
        """Make a table, a figure, the claims or the report from its slice of the plan and what that names."""
        name:
            product.rule
        input:
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
            "python workflow/scripts/{rule}.py"
            " --plan {input.plan:q}"
            " --spec {params.spec:q}"
            " --output $(dirname {output[0]:q})"
            " > {log:q} 2>&1"


def reads_of_references(wildcards):
    """The manifests of all that released runs are compared with."""
    return [f"{folder}/manifest.json" for folder in reference_folders(slice_of(TABLE, wildcards))]


def released_runs(wildcards):
    """The user's files of released runs, which are read before the first job, as their own job would read them last."""
    if PLAN and not workflow.dryrun:
        in_one_line(refuse_damaged, PLAN, [wildcards.table])
    return list(slice_of(TABLE, wildcards).get("references_sha256", {}))


rule reproduce:
    """Compare a table's runs with those that others released, which the run's configuration names."""
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

"""The plan derived from the configuration, and the few functions of wildcards that rules need. No torch here."""

import re

from encore.plan import ledger
from encore.claims.slice import claims_plan, claims_reads, printed_plan
from encore.errors import EncoreError
from encore.plan.figures import figure_plan, figure_reads
from encore.plan.figures.growing import GROWING, growing_artifacts, growing_plan
from encore.plan.artifacts import fetched
from encore.commands.preflight.resources import Requests
from encore.plan.project import CATALOGUE, load_plan
from encore.report.plan import REPORT, report_plan, report_reads
from encore.storage.files import canonical
from encore.plan.tables import (
    CURVES,
    curves_models,
    curves_plan,
    reference_reads,
    slice_digest,
    table_plan,
    table_reads,
    write_plans,
)
from encore.targets import everything_declared, recall, write_slices


def refuse(error):
    """Stop with one line instead of a traceback."""
    sys.tracebacklimit = 0
    sys.exit(f"error: {error}")


if workflow.is_main_process and (len(workflow.configfiles) > 1 or workflow.config_settings.config):
    refuse("a run's configuration is one complete file: give one --configfile, and no --config")

RUN_FILE = Path(workflow.configfiles[-1])
try:
    PLAN = load_plan(RUN_FILE, config)
    PLAN.asked = recall()
    TARGETS = everything_declared(PLAN)
    if workflow.is_main_process:
        ledger.check(PLAN.catalogue, CATALOGUE)
    write_slices(PLAN)
    SHOWN = report_plan(PLAN, RUN_FILE)
    if workflow.is_main_process:  # a cluster's job, which starts later, may find more tables made
        write_plans({REPORT: SHOWN})
except EncoreError as error:
    refuse(error)


REQUESTS = Requests(PLAN)
NAME = r"[a-z0-9_.=~+-]+-[0-9a-f]{8}"
FIGURES = "(?:" + "|".join(map(re.escape, PLAN.catalogue.figures)) + ")"


wildcard_constraints:
    source=NAME,
    downloaded=NAME,
    checkpoint=NAME,
    collection=NAME,
    tokenizer=NAME,
    tokens=NAME,
    prepared=NAME,
    start=r"[a-z0-9_.-]+-s\d+-[0-9a-f]{8}",
    pretrained=PLAN.models_after("pretrain"),
    finetuned=PLAN.models_after("finetune"),
    model=PLAN.lineages(),
    bm25=PLAN.systems("bm25"),
    fusion=PLAN.systems("fusion"),
    rerank=PLAN.systems("rerank"),
    indexed=rf"{NAME}@[a-z0-9_.=~-]+",
    system=rf"(?!(?:bm25\+mined|triples|systems|published)-){NAME}(?:@[a-z0-9_.=~-]+)?",
    listed=r"(?:triples|systems)-[0-9a-f]{8}",
    published=r"published-[0-9a-f]{8}",
    merged=r"bm25\+mined-[0-9a-f]{8}",
    doc2query_model=NAME,
    predicted_queries=NAME,
    index=NAME,
    teacher=rf"published|{NAME}",
    shard=r"\d{3}-of-\d{3}",
    topics=NAME,
    evaluation=NAME,
    measured=NAME,
    loss=NAME,
    paired=NAME,
    table=rf"(?!(?:{CURVES}|{GROWING}|{FIGURES})\.)[a-z0-9_/-]+",
    figure=FIGURES,
    inspection=NAME,
    curves=CURVES,
    corpus_size=GROWING,
    subset=NAME,


def spec_of(folder):
    """The one param of a rule: the canonical JSON of its slice of the plan, from wildcards alone."""

    def spec(wildcards):
        return canonical(PLAN.find(folder.format(**wildcards)).spec)

    return spec


def made_from(folder, role, file="manifest.json"):
    """A file of what an artifact is made from under a role; nothing where it has no such role."""

    def path(wildcards):
        inputs = PLAN.find(folder.format(**wildcards)).inputs
        return f"{inputs[role].folder}/{file}" if role in inputs else []

    return path


def source_of(folder):
    """The folder or file of the user's that a collection is read from; nothing for a kind that brings its own texts.

    A dry run plans with what is not there yet; without it Snakemake stops before the first job.
    """

    def path(wildcards):
        source = PLAN.find(folder.format(**wildcards)).source
        return source if source and (Path(source).exists() or not workflow.dryrun) else []

    return path


def each_of(folder, kind, file="manifest.json"):
    """A file of everything that an artifact is made from under roles of a kind: ``shard0``, ``shard1``, …"""

    def paths(wildcards):
        inputs = PLAN.find(folder.format(**wildcards)).inputs
        return [f"{artifact.folder}/{file}" for role, artifact in inputs.items() if role.startswith(kind)]

    return paths


def shards_of(folder, file="manifest.json"):
    """A file of every shard that a run searches."""
    return each_of(folder, "shard", file)


def scores_of_table(wildcards):
    """The manifests of all that a table reads: scores, measurements, models, collections."""
    return [artifact.manifest for artifact in table_reads(PLAN, wildcards.table)]


def table_spec(wildcards):
    """The digest of a table's slice of the plan, which lies in results/plan and survives Snakemake's records."""
    return canonical(slice_digest(table_plan(PLAN, wildcards.table)))


def reproduction_of_table(wildcards):
    """How close a table's runs are to released ones, where the run's configuration names such."""
    named = table_plan(PLAN, wildcards.table).get("references")
    return f"results/tables/{wildcards.table}.reproduction.csv" if named else []


def reads_of_references(wildcards):
    """The manifests of all that released runs are compared with."""
    return [artifact.manifest for artifact in reference_reads(PLAN, table_plan(PLAN, wildcards.table))]


def released_runs(wildcards):
    """The user's files of released runs."""
    return list(table_plan(PLAN, wildcards.table).get("references_sha256", {}))


def models_of_curves(wildcards):
    """The manifests of all models whose losses on held-out texts are drawn."""
    return [artifact.manifest for artifact in curves_models(PLAN)]


def scores_of_growing(wildcards):
    """The manifests of all scores that the figure of the growing collection shows, and of their runs."""
    return [artifact.manifest for artifact in growing_artifacts(PLAN)]


def growing_spec(wildcards):
    """The digest of the slice of the growing collection; like a table's, it also lies in results/plan."""
    return canonical(slice_digest(growing_plan(PLAN)))


def reads_of_figure(wildcards):
    """The manifests of all that a figure of the catalogue reads."""
    return [artifact.manifest for artifact in figure_reads(PLAN, wildcards.figure)]


def figure_spec(wildcards):
    """The digest of a figure's slice of the plan; like a table's, it also lies in results/plan."""
    return canonical(slice_digest(figure_plan(PLAN, wildcards.figure)))


def curves_spec(wildcards):
    """The digest of the slice of all pre-training steps; like a table's, it also lies in results/plan."""
    return canonical(slice_digest(curves_plan(PLAN)))


def reads_of_claims(wildcards):
    """The manifests of all that the claims' tables and figures read."""
    return [artifact.manifest for artifact in claims_reads(PLAN)]


def claims_spec(wildcards):
    """The digest of the slice of the claims; like a table's, it also lies in results/plan."""
    return canonical(slice_digest(claims_plan(PLAN)))


def printed_spec(wildcards):
    """The digest of the slice of the claims on printed numbers; like a table's, it also lies in results/plan."""
    return canonical(slice_digest(printed_plan(PLAN.catalogue)))


def memory(folder, least):
    """MB for the size of the collections that an artifact is made from, growing with each attempt."""

    def resource(wildcards, attempt):
        return REQUESTS.memory_mb(PLAN.find(folder.format(**wildcards)), least) * attempt

    return resource


def minutes(folder, least):
    """Minutes for the size of the collections that an artifact is made from, growing with each attempt."""

    def resource(wildcards, attempt):
        return REQUESTS.minutes(PLAN.find(folder.format(**wildcards)), least) * attempt

    return resource


def products_of_report(wildcards):
    """The manifests of the tables, figures and claims that the report shows."""
    return report_reads(SHOWN)


def report_spec(wildcards):
    """The digest of the report's slice; like a table's, it also lies in results/plan."""
    return canonical(slice_digest(SHOWN))


def escalate(amount):
    """A resource that grows with each attempt: once, twice, three times the amount."""

    def resource(wildcards, attempt):
        return amount * attempt

    return resource

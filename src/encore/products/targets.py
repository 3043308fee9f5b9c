"""What a user may request of Snakemake: the targets that a configuration declares, and what any target is made from."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from encore.config.datasets import draw_of
from encore.config.finetuning import FinetuneStep
from encore.config.lineage import split_index
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, upstream
from encore.plan.artifacts.collections import FETCHED
from encore.plan.plan import Plan
from encore.products.claims.entries import CLAIMS, PRINTED
from encore.products.claims.plan import claims_plan, claims_reads
from encore.products.figures.plan import curves_models, curves_plan, figure_plan, figure_reads
from encore.products.tables.plan import CURVES, table_plan, table_reads
from encore.storage import typed

CLAIMS_FILES = tuple(f"{name}.{end}" for name in (CLAIMS, PRINTED) for end in ("csv", "md", "manifest.json"))
CURVES_MISSING = "the tables of this run have no pre-training step whose losses could be drawn"
REPORT = PurePosixPath("results/report/index.html")
PAGES = (f"results/{PRINTED}.csv", str(REPORT))  # of every run
REPRODUCTION = ".reproduction.csv"  # how close a table's runs are to released ones
FORMATS = {
    "tables": (".csv", ".md", ".tex", ".html", ".manifest.json", REPRODUCTION, ".reproduction.manifest.json"),
    "figures": (".png", ".svg", ".csv", ".manifest.json"),
}


def everything_declared(plan: Plan) -> list[str]:
    """Every table and figure of the configuration, the scores of its further lineages, and the page of all of them."""
    tables = [f"results/tables/{name}.csv" for name in plan.config.tables]
    figures = [f"results/figures/{name}.png" for name in plan.config.tables if has_figure(table_plan(plan, name))]
    figures += [f"results/figures/{CURVES}.png"] if curves_plan(plan)["rows"] else []
    figures += [f"results/figures/{name}.png" for name in plan.config.figures]
    scores = [artifact for name in plan.config.lineages for artifact in lineage_targets(plan, name)]
    return [*tables, *figures, *scores, *PAGES]


def has_figure(table: dict[str, Any]) -> bool:
    """Whether a table has an objective next to a control that it is compared with, whose difference can be drawn."""
    column = next((column["id"] for column in table["columns"] if column["primary"]), None)
    comparators = table["significance"]["comparators"] if table["significance"] else []
    roles: dict[str, set[str]] = {}
    for row in table["rows"]:
        if column and row["cells"][column]["reads"] and (row["role"] != "control" or row["id"] in comparators):
            roles.setdefault(row["setting"], set()).add(row["role"])
    return any({"objective", "control"} <= found for found in roles.values())


def forest_plan(plan: Plan, name: str) -> dict[str, Any]:
    """The slice of the plan that a table's figure is drawn from: the table's.

    Raises:
        EncoreError: as for the table, or there is nothing to draw.
    """
    content = table_plan(plan, name)
    if not has_figure(content):
        raise EncoreError(f"figures/{name}: no objective of this table is compared with a control, so nothing is drawn")
    return content


def summary(plan: Plan, root: str | None, run: str) -> str:
    """The files of a finished run that are worth a look, its root, and what to do next.

    Args:
        root: of what lies in results, if anything does.
        run: the run's file, as commands name it.
    """
    shown = tuple(f"results/{kind}/" for kind in FORMATS)
    made = [path for path in everything_declared(plan) if path.startswith(shown) and Path(path).is_file()]
    lines = [f"{plan.config.title}: {len(made)} tables and figures are made", *(f"  {path}" for path in made)]
    lines += [f"  {path}" for path in PAGES if Path(path).is_file()]
    lines += [f"root {root}: one digest of all this, to write down elsewhere"] if root else []
    table = next(iter(plan.config.tables), "table1")
    show, audit = typed.encore("show", table, run=run), typed.encore("audit", run=run)
    return "\n".join([*lines, f"Show a table with `{show}`, verify all with `{audit}`."])


def lineage_targets(plan: Plan, name: str) -> list[str]:
    """The scores of a lineage or system on every dataset, for every seed; a lineage's models if they score pairs."""
    if name not in plan.catalogue.systems:
        own, index = split_index(name)
        lineage = plan.resolve.lineage(own)
        if plan.resolve.scorer(lineage) != "vector" and index is None:
            return [plan.model(lineage, seed).manifest for seed in plan.config.seeds]
    datasets = [
        dataset for dataset in plan.resolve.datasets.in_use() if not plan.resolve.dataset(dataset).fields.zero_shot
    ]
    found = []
    for seed in plan.config.seeds:
        for dataset in datasets:
            splits = plan.resolve.dataset(dataset).fields.splits
            reported = dict.fromkeys(
                split.topics or key
                for key, split in splits.items()
                if split.measures and split.role in ("test", "graded") and _is_its_own(plan, name, dataset, key)
            )
            found += [plan.scores(name, seed, dataset, topics).manifest for topics in reported]
    return found


def _is_its_own(plan: Plan, name: str, dataset: str, split: str) -> bool:
    """Whether a lineage is tested on a split by default: on a draw's only after training on it, a system never."""
    if draw_of(split) is None or name in plan.catalogue.systems:
        return draw_of(split) is None
    steps = [plan.resolve.step(step) for step in plan.resolve.lineage(split_index(name)[0]).steps]
    draws = {
        draw_of(step.train_split) for step in steps if isinstance(step, FinetuneStep) and step.collection == dataset
    }
    return draws == {draw_of(split)}


def find(plan: Plan, folder: str) -> Artifact:
    """The artifact in a folder: named by it, declared by the configuration, or in the index of an earlier plan.

    Raises:
        EncoreError: nothing of this configuration makes it.
    """
    try:
        return plan.find(folder)
    except EncoreError:
        declared = upstream(declared_reads(plan))
        return next((artifact for artifact in declared if artifact.folder == folder), None) or plan.find(folder)


def reads_of_targets(plan: Plan, targets: Iterable[str]) -> dict[str, list[Artifact]]:
    """For each target what it is made from; a rule, or no target at all, is for what the configuration declares."""
    targets = list(targets)
    files = [target for target in targets if "/" in target]
    if not files or len(files) < len(targets):
        files += everything_declared(plan)
    return {target: reads_of(plan, target) for target in files}


def needed_by(plan: Plan, targets: Sequence[str]) -> list[Artifact]:
    """All that targets are made from; what the configuration declares, where there are none."""
    return upstream(read for reads in reads_of_targets(plan, targets).values() for read in reads)


def downloads(plan: Plan) -> list[str]:
    """The manifests of all that the configuration needs from the network."""
    needed = needed_by(plan, [])
    return [artifact.manifest for artifact in needed if artifact.stage in FETCHED]


def reads_of(plan: Plan, target: str) -> list[Artifact]:
    """What a target is made from, or the artifact that it is a file of."""
    path = PurePosixPath(os.path.relpath(target))
    if path.parent == REPORT.parent:
        return list(declared_reads(plan))
    if (place := _place(path)) is None:  # the claims on printed numbers, which read nothing
        return []
    match place.split("/", 2)[1:]:
        case ["tables", name]:
            return table_reads(plan, name)
        case ["figures", name]:
            return _drawn(plan, name)
        case [name] if name == CLAIMS:
            return claims_reads(plan, claims_plan(plan))
        case _:
            return [find(plan, place)]


def declared_reads(plan: Plan) -> Iterator[Artifact]:
    """What the declared tables and figures read, and what is made of further lineages."""
    for name in plan.config.tables:
        yield from table_reads(plan, name)
    for name in plan.config.figures:
        yield from figure_reads(plan, name)
    for name in plan.config.lineages:
        yield from (plan.find(str(PurePosixPath(target).parent)) for target in lineage_targets(plan, name))


def _place(path: PurePosixPath) -> str | None:
    """The identity of a target: an artifact's folder; a table, a figure or the claims without the ending."""
    match path.parts:
        case ("results", name) if name.startswith(f"{CLAIMS}."):
            return f"results/{CLAIMS}"
        case ("results", "tables" | "figures" as kind, *_):
            return _stem(str(path), kind)
        case ("results", _, _, *rest) if rest:
            return str(path.parent)
        case _:
            return None


def _stem(name: str, kind: str) -> str | None:
    """A product's name without its ending, the longest that fits."""
    fitting = [ending for ending in FORMATS[kind] if name.endswith(ending)]
    return name.removesuffix(max(fitting, key=len)) if fitting else None


def _drawn(plan: Plan, name: str) -> list[Artifact]:
    """What a figure shows: one of the catalogue, one of our own that is of no table, or a table's."""
    if name == CURVES:
        return curves_models(plan)
    return figure_reads(plan, name) if name in plan.catalogue.figures else table_reads(plan, name)


def check_target(plan: Plan, target: str) -> None:
    """Refuse a target that nothing makes.

    Raises:
        EncoreError: it is no table or figure that can be had, and no artifact of this configuration.
    """
    path = PurePosixPath(os.path.relpath(target))  # as Snakemake reads it: ./results/… and absolute paths too
    match path.parts:
        case ("results", "tables" | "figures" as kind, *_):
            _check_product(plan, str(path), kind)
        case ("results", name) if name in CLAIMS_FILES:
            return
        case ("results", "report", "index.html" | "index.runs.json" | "manifest.json"):
            return
        case ("results", _, *rest) if rest:
            _check_artifact(plan, path)
        case _:
            known = [f"results/{name}" for name in CLAIMS_FILES]
            near = nearest(target, [*everything_declared(plan), *known, str(REPORT)])
            raise EncoreError(f"target {target!r} is no file of results/{near}")


def _check_product(plan: Plan, target: str, kind: str) -> None:
    name = target.removeprefix(f"results/{kind}/")
    stem = _stem(name, kind)
    if stem is None:
        raise EncoreError(f"target {target!r}: {kind} are written as {', '.join(FORMATS[kind])}")
    if (kind, stem) == ("figures", CURVES):
        if not curves_plan(plan)["rows"]:
            raise EncoreError(f"target {target!r}: {CURVES_MISSING}")
        return
    if kind == "figures" and stem in plan.catalogue.figures:
        figure_plan(plan, stem)
        return
    if stem not in plan.catalogue.tables:
        known = [*plan.catalogue.tables, *(plan.catalogue.figures if kind == "figures" else [])]
        raise EncoreError(f"target {target!r}: there is no {kind[:-1]} {stem!r}{nearest(stem, known)}")
    forest_plan(plan, stem) if kind == "figures" else table_plan(plan, stem)
    if REPRODUCTION.removesuffix("csv") in name and "references" not in table_plan(plan, stem):
        raise EncoreError(f"target {target!r}: this run's `references:` name no released run for {stem!r}; add one")


def _check_artifact(plan: Plan, path: PurePosixPath) -> None:
    if path.parts[1] in ("plan", "logs", "benchmarks", "state"):
        raise EncoreError(f"target {str(path)!r} is made on the way to others and is no target")
    find(plan, str(path.parent))

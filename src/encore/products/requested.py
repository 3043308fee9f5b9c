"""The targets of ``encore preflight`` as Snakemake takes them, or short names of tables and figures."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.products.claims.entries import CLAIMS
from encore.products.tables.plan import CURVES, table_plan
from encore.products.targets import REPORT, REPRODUCTION, check_target, has_figure, reads_of

SHORT = {name: f"results/{name}.csv" for name in (CLAIMS, f"{CLAIMS}_printed")} | {"report": str(REPORT)}
REPRODUCE = "reproduce"
FIGURES = {CURVES: "curves"}  # figures of no paper, with the rules that draw them


def requested_targets(plan: Plan, names: Iterable[str]) -> list[str]:
    """The files that are meant: of a table's short name the table, and its figure where it has one.

    Raises:
        EncoreError: nothing is called so, or makes such a file.
    """
    return list(dict.fromkeys(target for name in names for target in _meant(plan, name)))


def requested_products(plan: Plan, wanted: Iterable[str]) -> Iterator[tuple[Artifact, str]]:
    """Each target that is no artifact's file, as one that is made from what it reads, and where its file lies."""
    for target in wanted:
        path = Path(os.path.relpath(target))
        read = {each.folder: each for each in reads_of(plan, target)}
        for rule, file in _rules(plan, path):
            folder = str(file.with_name(file.name.split(".")[0]))
            yield Artifact(rule, f"{folder}.{rule}" if rule == REPRODUCE else folder, {}, read), str(file)


def _meant(plan: Plan, name: str) -> list[str]:
    if name and Path(os.path.relpath(name)).parts[:1] == ("results",):
        check_target(plan, name)
        return [name]
    if name in SHORT:
        return [SHORT[name]]
    found = [f"results/tables/{name}.csv"] if name in plan.catalogue.tables else []
    drawn = has_figure(table_plan(plan, name)) if found else name in plan.catalogue.figures or name in FIGURES
    found += [f"results/figures/{name}.png"] if drawn else []
    if not found:
        known = [*plan.catalogue.tables, *plan.catalogue.figures, *FIGURES, *SHORT]
        raise EncoreError(f"there is no table, figure or target {name!r}{nearest(name, known)}")
    for target in found:
        check_target(plan, target)
    return found


def _rules(plan: Plan, path: Path) -> list[tuple[str, Path]]:
    """The rules that make a product, with its file and one that it is made from; none for a file of an artifact."""
    kind, name = path.parts[1], "/".join(path.parts[2:]).split(".")[0]
    if kind == "tables":
        compared = path.with_name(path.name.split(".")[0] + REPRODUCTION)
        found = [(REPRODUCE, compared)] if "references" in table_plan(plan, name) else []
        return found if path == compared else [*found, ("table", path)]
    if kind == "figures":
        return [(FIGURES.get(name, "draw" if name in plan.catalogue.figures else "figure"), path)]
    return [(kind.split(".")[0], path)] if path.is_relative_to(REPORT.parent) or len(path.parts) == 2 else []

"""The slices of the plan of all products that a run declares, and the files that they are written to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.figures.plan import curves_plan, figure_plan
from encore.products.slices import Product
from encore.products.tables.plan import CURVES, has_figure, table_plan
from encore.storage.files import canonical, full_digest, write_changed

PLANS = Path("results/plan")
RECORD = ".manifest.json"


def declared_figures(plan: Plan) -> list[str]:
    """The figures of a run: of its tables, of its pre-training steps, and those that it names."""
    curves = [CURVES] if curves_plan(plan).rows else []
    return [*(name for name in plan.config.tables if has_figure(table_plan(plan, name))), *curves, *plan.config.figures]


def wanted_tables(plan: Plan) -> list[str]:
    """The tables that the run declares, and others of the catalogue that are in results and that it can have."""
    known, made = plan.catalogue.tables, _made("results/tables") + _made("results/figures")
    found = (name for name in made if name in known and _can_be_planned(plan, name, table_plan))
    return list(dict.fromkeys([*plan.config.tables, *found]))


def wanted_figures(plan: Plan) -> list[str]:
    """The figures that the run declares, and others of the catalogue that are in results and that it can have."""
    known, made = plan.catalogue.figures, _made("results/figures")
    found = (name for name in made if name in known and _can_be_planned(plan, name, figure_plan))
    return list(dict.fromkeys([*plan.config.figures, *found]))


def declared(plan: Plan) -> dict[str, dict[str, Any]]:
    """The contents of the slices of all tables and figures that are declared or in results, by name."""
    tables = {name: table_plan(plan, name).dumped() for name in wanted_tables(plan)}
    curves = curves_plan(plan)
    figures = {CURVES: curves.dumped()} if curves.rows else {}
    return tables | figures | {name: figure_plan(plan, name).dumped() for name in wanted_figures(plan)}


def plan_file(name: str, folder: Path = PLANS) -> Path:
    """The file of a slice of the plan."""
    return folder / f"{name}.json"


def read_plan(name: str) -> dict[str, Any]:
    """A slice of the plan as it was written."""
    content: dict[str, Any] = json.loads(plan_file(name).read_text(encoding="utf-8"))
    return content


def write_plan(name: str, content: dict[str, Any], folder: Path = PLANS) -> Path:
    """Write a slice of the plan; a file whose bytes would be the same is not touched."""
    path = plan_file(name, folder)
    write_changed(path, canonical(content) + "\n")
    return path


def is_written(name: str, content: dict[str, Any]) -> bool:
    """True if the file of a slice of the plan has this content."""
    path = plan_file(name)
    return path.is_file() and path.read_bytes() == (canonical(content) + "\n").encode()


def slice_digest(content: dict[str, Any]) -> dict[str, str]:
    """The name and the digest of a slice, for a command line, which has no room for a large one."""
    return {"name": content["name"], "sha256": full_digest(content)}


def _made(folder: str) -> list[str]:
    """The names of the tables or figures in a folder of results."""
    return [str(path.relative_to(folder)).removesuffix(RECORD) for path in sorted(Path(folder).rglob(f"*{RECORD}"))]


def _can_be_planned(plan: Plan, name: str, planned: Callable[[Plan, str], Product]) -> bool:
    """True if a product in results, perhaps of another run, can be built by this one."""
    try:
        return bool(planned(plan, name))
    except EncoreError:
        return False

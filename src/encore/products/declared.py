"""All slices of the plan that a configuration declares, and the files that they are written to."""

import json
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.figures.plan import curves_plan, figure_plan
from encore.products.tables.plan import CURVES, has_figure, table_folders, table_plan
from encore.storage.files import canonical, full_digest, write_changed

PLANS = Path("results/plan")
FOLDERS = (Path("results/tables"), Path("results/figures"))
RECORD = ".manifest.json"


def made_products(folder: Path) -> list[str]:
    """The names of the tables or figures that lie in a folder of results."""
    found = (str(path.relative_to(folder)).removesuffix(RECORD) for path in sorted(folder.rglob(f"*{RECORD}")))
    return [name for name in found if not name.endswith(".reproduction")]


def declared_figures(plan: Plan) -> list[str]:
    """The figures of a run: of its tables, of its pre-training steps, and those that it names."""
    curves = [CURVES] if curves_plan(plan)["rows"] else []
    return [*(name for name in plan.config.tables if has_figure(table_plan(plan, name))), *curves, *plan.config.figures]


def wanted_tables(plan: Plan) -> list[str]:
    """The tables that the configuration declares, and others of the catalogue that lie in results."""
    made = (name for folder in FOLDERS for name in made_products(folder))
    return list(dict.fromkeys([*plan.config.tables, *(name for name in made if _can_be_planned(plan, name))]))


def wanted_figures(plan: Plan) -> list[str]:
    """The figures that the configuration declares, and others of the catalogue that lie in results."""
    made = (name for name in made_products(FOLDERS[1]) if name in plan.catalogue.figures)
    return list(dict.fromkeys([*plan.config.figures, *(name for name in made if _can_be_drawn(plan, name))]))


def declared(plan: Plan) -> dict[str, dict[str, Any]]:
    """The slices of all tables and figures that are declared or lie in results, by name."""
    tables = {name: table_plan(plan, name) for name in wanted_tables(plan)}
    curves = curves_plan(plan)
    figures = {CURVES: curves} if curves["rows"] else {}
    return tables | figures | {name: figure_plan(plan, name) for name in wanted_figures(plan)}


def plan_file(name: str, folder: Path = PLANS) -> Path:
    """Where a slice of the plan lies."""
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
    """Whether a slice of the plan lies there as it is."""
    path = plan_file(name)
    return path.is_file() and path.read_bytes() == (canonical(content) + "\n").encode()


def slice_digest(content: dict[str, Any]) -> dict[str, str]:
    """A slice on a command line, which has no room for a large one: its name and its digest."""
    return {"name": content["name"], "sha256": full_digest(content)}


def folders(row: dict[str, Any]) -> list[str]:
    """The folders that a row of a table or of a figure reads."""
    if "cells" in row:
        return table_folders([row])
    if "reads" in row:
        return list(row["reads"])
    return [seed["model"] for seed in row["seeds"]]


def _can_be_planned(plan: Plan, name: str) -> bool:
    """Whether a table that lies in results, perhaps of another configuration, can be planned under this one."""
    try:
        return name in plan.catalogue.tables and bool(table_plan(plan, name))
    except EncoreError:
        return False


def _can_be_drawn(plan: Plan, name: str) -> bool:
    """Whether a figure that lies in results can be planned under this configuration."""
    try:
        return bool(figure_plan(plan, name))
    except EncoreError:
        return False

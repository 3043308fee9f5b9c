"""All slices of the plan that a configuration declares, and the files that they are written to."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.plan.figures import figure_plan, wanted_figures
from encore.plan.figures.growing import growing_plan
from encore.plan.plan import Plan
from encore.plan.tables.slices import table_folders, table_plan
from encore.plan.tables.steps import curves_plan
from encore.storage.files import canonical, full_digest, write_text

PLANS = Path("results/plan")
PRODUCTS = ("results/tables/", "results/figures/")


def wanted_tables(plan: Plan) -> list[str]:
    """The tables that the configuration declares, and others of the catalogue that a person asked for by name."""
    asked = (place.split("/", 2)[2] for place in plan.asked if place.startswith(PRODUCTS))
    return list(dict.fromkeys([*plan.config.tables, *(name for name in asked if _can_be_had(plan, name))]))


def declared(plan: Plan) -> dict[str, dict[str, Any]]:
    """The slices of all that the configuration declares or a person asked for, by name."""
    tables = {name: table_plan(plan, name) for name in wanted_tables(plan)}
    curves = curves_plan(plan)
    growing = growing_plan(plan)
    figures = {each["name"]: each for each in (curves, growing) if each["rows"]}
    return tables | figures | {name: figure_plan(plan, name) for name in wanted_figures(plan)}


def plan_file(name: str) -> Path:
    """Where a slice of the plan lies."""
    return PLANS / f"{name}.json"


def write_plans(slices: Mapping[str, dict[str, Any]]) -> None:
    """Write slices by name; a file whose bytes would be the same is not touched."""
    for name, content in slices.items():
        path, text = plan_file(name), canonical(content) + "\n"
        if not path.is_file() or path.read_text() != text:
            write_text(path, text)


def slice_digest(content: dict[str, Any]) -> dict[str, str]:
    """What stands for a slice on a command line, which has no room for a large one: its name and its digest."""
    return {"name": content["name"], "sha256": full_digest(content)}


def folders(row: dict[str, Any]) -> list[str]:
    """The folders that a row of a table or of a figure reads."""
    if "cells" in row:
        return table_folders([row])
    if "reads" in row:
        return list(row["reads"])
    return [seed[kind] for seed in row["seeds"] for kind in ("model", "scores") if kind in seed]


def _can_be_had(plan: Plan, name: str) -> bool:
    """Whether a table that was asked for once, perhaps under another configuration, can be planned under this one."""
    try:
        return name in plan.catalogue.tables and bool(table_plan(plan, name))
    except EncoreError:
        return False

"""Plans of the configurations that are shipped, with some of their entries changed."""

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from encore.config.run import RunConfig
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan

ROOT = Path(__file__).parents[2]


@cache
def _read(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / f"config/{name}.yaml").read_text())


def run_file(name: str) -> dict[str, Any]:
    """What a file of config/ says."""
    return deepcopy(_read(name))


def plan_with(
    catalogue: Catalogue, run: str, changes: dict[str, Any] | None = None, **scale: dict[str, dict[str, Any]]
) -> Plan:
    """The plan of a run with other keys, and with other fields of its scale's entries: ``steps={"ict": {...}}``."""
    content = run_file(run) | deepcopy(changes or {})
    for kind, entries in scale.items():
        for name, fields in entries.items():
            content["scale"][kind][name] = content["scale"][kind].get(name, {}) | fields
    return Plan(RunConfig.model_validate(content), catalogue)

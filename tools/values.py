"""Where every value of an experiment comes from: the papers' ledgers, compared with the configuration: docs/values.md.

A ledger, ``config/papers/<paper>/ledger.yaml``, is a list of sources, each with the fields that come from it and why.
Values are in the configuration alone. config/README.md, "Sources of values", has the grammar of fields.
"""

import argparse
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from encore.storage.program import run

import yaml
from pydantic import BaseModel, Field

from encore.config.entries import PretrainStep
from encore.config.run_file import read_run
from encore.config.validation import Strict, checked
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue, read_step
from encore.plan.groups import alternatives
from encore.plan.scale import with_single_names
from encore.products.catalogue import load_catalogue

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/values.md"
OURS = "ours"  # how the `source:` of a step begins that is no paper's and vouches for itself
PLUMBING = {"kind", "objective", "collection", "source"}
RECIPE = {"warmup", "schedule", "weight_decay", "max_grad_norm", "held_out"}  # in effect even if a step sets none
HEAD = """<!-- Made by `python -m tools.values` from config/papers/*/ledger.yaml and the configuration: edit there. -->
# Sources of values

Where the values of the papers' steps, objectives and systems come from, and why. A field is written as in
[config/README.md](../config/README.md#sources-of-values); for several names in braces each different value is
listed once. `encore show-config` prints what a run's `scale:` sets.
"""


class Source(Strict):
    """One source, with the fields whose values come from it."""

    origin: Literal["paper", "code", "inferred", "ours"] = Field(alias="from")
    place: str = Field("", description="section, table or equation of the paper; repository and path of the code")
    fields: dict[str, str] = Field(description="each with why it has its value; where paper and code part, what runs")


def values(catalogue: Catalogue, folder: Path) -> dict[str, Any]:
    """The value of every field that a source can be about."""
    found: dict[str, Any] = {}
    for name, written in catalogue.steps.items():
        step = read_step(written)
        found |= _fields(f"steps.{name}", step)
        if isinstance(step, PretrainStep):
            own = {
                key: field.get_default() for key, field in type(step).model_fields.items() if not field.is_required()
            }
            found |= {f"objectives.{step.objective}.{key}": _plain(value) for key, value in own.items()}
    for kind, models in (("backbones", catalogue.backbones), ("systems", catalogue.systems)):
        for name, model in models.items():
            found |= _fields(f"{kind}.{name}", model)
    for name, dataset in catalogue.datasets.items():
        found |= _fields(f"datasets.{name}", dataset)
        for split, fields in dataset.splits.items():
            found |= {f"measures.{name}.{split}.{called}": measure for called, measure in fields.measures.items()}
    for name, table in catalogue.tables.items():
        found |= {f"tables.{name}.{row.id}": row.reported_only for row in table.rows if row.reported_only}
    return found | _run("config", with_single_names(read_run(folder / "config.yaml"), catalogue).model_dump())


def needed(catalogue: Catalogue) -> Iterator[str]:
    """Fields that must have a source: of the papers' steps and systems, recipes, and objectives' defaults."""
    for name, written in catalogue.steps.items():
        if not str(written.get("source", "")).startswith(OURS):
            step = read_step(written)
            keys = {key for key, value in written.items() if value is not None} | RECIPE & type(
                step
            ).model_fields.keys()
            yield from (f"steps.{name}.{key}" for key in sorted(keys - PLUMBING))
            if isinstance(step, PretrainStep):
                own = type(step).model_fields.keys() - PretrainStep.model_fields.keys() - PLUMBING
                defaults = sorted(key for key in own if not type(step).model_fields[key].is_required())
                yield from (f"objectives.{step.objective}.{key}" for key in defaults)
    for name, system in catalogue.systems.items():
        if not system.source.startswith(OURS):
            keys = {key for key in system.model_fields_set if not isinstance(getattr(system, key), str)}
            yield from (f"systems.{name}.{key}" for key in sorted(keys))


def problems(catalogue: Catalogue, folder: Path) -> list[str]:
    """Values without a source; sources of nothing or of several values; a place or a reason that is missing."""
    known, cited, found = values(catalogue, folder), dict[str, str](), list[str]()
    for paper, source, field, why in _entries(folder):
        if source.origin != "ours" and not source.place.strip():
            found.append(f"{paper}: {field} is from {source.origin}; give its `place:`, a section or a file")
        if not why.endswith("."):
            found.append(f"{paper}: {field} needs its reason, a sentence")
        for name in alternatives(field):
            fitting = {str(value): None for value in _values_of(name, known)}
            if len(fitting) != 1:
                found.append(f"{paper}: {name} is {' and '.join(fitting) or 'not in the configuration'}")
            if name in cited:
                found.append(f"{name} has two sources, in the ledgers of {cited[name]} and {paper}; keep one")
            cited[name] = paper
    stars = [name for name in cited if "*" in name]
    for name in dict.fromkeys(needed(catalogue)):
        if name not in cited and not any(fnmatchcase(name, star) for star in stars):
            fix = f"add it to a config/papers/<paper>/ledger.yaml, or begin the `source:` of its entry with `{OURS};`"
            found.append(f"no ledger says where {name}={known[name]} comes from; {fix}")
    return found


def page(catalogue: Catalogue, folder: Path) -> str:
    """All ledgers as Markdown: a table for each paper, a line for each field."""
    known, text, last = values(catalogue, folder), HEAD, ""
    for paper, source, field, why in _entries(folder):
        if paper != last:
            text += f"\n## {paper}\n\n| field | value | from | why |\n| --- | --- | --- | --- |\n"
            last = paper
        shown = dict.fromkeys(str(value) for name in alternatives(field) for value in _values_of(name, known))
        cells = (f"`{field}`", ", ".join(shown), f"{source.origin}: {source.place}".rstrip(": "), why)
        text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return text


def _entries(folder: Path) -> Iterator[tuple[str, Source, str, str]]:
    """Every field of every ledger, as it is written there: its paper, its source, the field, and the reason."""
    for path in sorted((folder / "papers").glob("*/ledger.yaml")):
        for written in yaml.safe_load(path.read_text()):
            source = checked(Source, written, str(path))
            yield from ((path.parent.name, source, field, why) for field, why in source.fields.items())


def _values_of(name: str, known: dict[str, Any]) -> list[Any]:
    """The value of a field, or those of all fields that its star matches."""
    return [value for each, value in known.items() if each == name or ("*" in name and fnmatchcase(each, name))]


def _run(place: str, value: Any) -> dict[str, Any]:
    """Every value of a run's file by its place."""
    if not isinstance(value, dict):
        return {place: value}
    return {name: found for key, inner in value.items() for name, found in _run(f"{place}.{key}", inner).items()}


def _fields(place: str, model: BaseModel) -> dict[str, Any]:
    return {f"{place}.{key}": _plain(getattr(model, key)) for key in type(model).model_fields}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def main() -> None:
    argparse.ArgumentParser(prog="python -m tools.values", description=__doc__).parse_args()
    catalogue, folder = load_catalogue(ROOT / "config"), ROOT / "config"
    if wrong := problems(catalogue, folder):
        raise EncoreError("\n".join(wrong))
    PAGE.write_text(page(catalogue, folder), encoding="utf-8")


if __name__ == "__main__":
    run(main)

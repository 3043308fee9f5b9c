"""Where every value of an experiment comes from: the papers' ledgers, and the check that nothing runs without a source.

A ledger is a list of entries, ``config/papers/<paper>/ledger.yaml``. The field of an entry is a place in the
configuration: ``steps.<step>.<field>`` (as it is in effect), ``objectives.<objective>.<field>`` (its default),
``backbones.…``, ``systems.…``, or ``config.…`` in a run's own file, which is its user's to change and is not checked.
Braces list several names, ``steps.{ae,ar}.batch``; a star is every name without an entry of its own.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from encore.config.run import PretrainStep, Step, Strict, System
from encore.config.validation import checked, load_yaml, nearest
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue, read_step

PLACE = "config/papers/<paper>/ledger.yaml"
OURS = "ours"  # how the `source:` of a step begins that is no paper's and vouches for itself
PLUMBING = {"kind", "objective", "collection", "source"}
RECIPE = {"warmup", "schedule", "weight_decay", "max_grad_norm", "held_out"}  # in effect even if a step sets none


class Entry(Strict):
    """One value and its source."""

    field: str
    value: Any
    origin: Literal["paper", "code", "inferred", "ours"] = Field(alias="from")
    place: str = Field("", description="section, table or equation of the paper; repository and path of the code")
    why: str = Field("", description="why this value; where paper and code part, what runs the other reading")
    paper: str = Field(description="whose ledger it stands in: the name of its folder")

    @property
    def names(self) -> list[str]:
        """The field's names, with braces written out."""
        parts = re.split(r"\{(.*?)\}", self.field)
        return ["".join(choice) for choice in product(*(part.split(",") for part in parts))]


def read(folder: Path) -> list[Entry]:
    """Every entry of every ledger below ``folder``, in the order of papers and lines.

    Raises:
        EncoreError: an entry is malformed, has no place or no reason; one line with the ledger and the field.
    """
    return [
        _entry(value, path) for path in sorted((folder / "papers").glob("*/ledger.yaml")) for value in _written(path)
    ]


def check(catalogue: Catalogue, folder: Path) -> None:
    """Refuse a value without a source, and a source that gives another value.

    Raises:
        EncoreError: the first mistake, in one line: which field, and where to write what.
    """
    configured = values(catalogue)
    cited = sources(read(folder), set(configured))
    for name, entry in cited.items():
        if _plain(entry.value) != configured[name]:
            raise EncoreError(
                f"{_ledger(entry.paper)}: {name} is {entry.value!r} there and {configured[name]!r} in the configuration"
                "; make them equal, with the source of the new value"
            )
    for name in needed(catalogue):
        if name not in cited:
            raise EncoreError(_uncited(name, configured[name]))


def values(catalogue: Catalogue) -> dict[str, Any]:
    """The value at every place of the catalogue that an entry can be about."""
    found: dict[str, Any] = {}
    for name, written in catalogue.steps.items():
        step = read_step(written)
        found |= _fields(f"steps.{name}", step)
        if isinstance(step, PretrainStep):
            found |= {f"objectives.{step.objective}.{key}": value for key, value in _defaults(type(step)).items()}
    for kind, models in (("backbones", catalogue.backbones), ("systems", catalogue.systems)):
        for name, model in models.items():
            found |= _fields(f"{kind}.{name}", model)
    return found


def needed(catalogue: Catalogue) -> Iterator[str]:
    """Every place that must have a source: fields of a paper's steps and systems, recipes, and objectives' defaults."""
    objectives: dict[str, type[PretrainStep]] = {}
    for name, written in catalogue.steps.items():
        if str(written.get("source", "")).startswith(OURS):
            continue
        step = read_step(written)
        if isinstance(step, PretrainStep):
            objectives[step.objective] = type(step)
        written_keys = {key for key, value in written.items() if value is not None}
        yield from (
            f"steps.{name}.{key}" for key in sorted((written_keys | RECIPE & type(step).model_fields.keys()) - PLUMBING)
        )
    for name, fields in objectives.items():
        own = _defaults(fields).keys() - PretrainStep.model_fields.keys()
        yield from (f"objectives.{name}.{key}" for key in sorted(own))
    for name, system in catalogue.systems.items():
        if not system.source.startswith(OURS):
            yield from (f"systems.{name}.{key}" for key in sorted(_written_values(system)))


def sources(entries: list[Entry], known: set[str]) -> dict[str, Entry]:
    """The entry of each place; entries with names override those with stars.

    Raises:
        EncoreError: an entry is about nothing, or two are about the same.
    """
    cited: dict[str, Entry] = {}
    general: dict[str, Entry] = {}
    for name, entry in _each(entries):
        if name.startswith("config."):
            continue
        if "*" in name:
            general |= {each: entry for each in known if fnmatchcase(each, name)}
        elif name not in known:
            raise EncoreError(f"{_ledger(entry.paper)}: {name} is not in the configuration{nearest(name, known)}"[:300])
        elif name in cited:
            papers = " and ".join(sorted({cited[name].paper, entry.paper}))
            raise EncoreError(f"{name} has two entries, in the ledger of {papers}; keep one")
        else:
            cited[name] = entry
    return {**general, **cited}


def _each(entries: list[Entry]) -> Iterator[tuple[str, Entry]]:
    for entry in entries:
        yield from ((name, entry) for name in entry.names)


def table(entries: list[Entry]) -> str:
    """The ledgers for people: a line for each field, in columns."""
    lines = [("field", "value", "from", "place", "why")]
    lines += [(name, _short(entry.value), entry.origin, _place(entry), entry.why) for name, entry in _each(entries)]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[4]]) for line in lines
    )


def _written(path: Path) -> list[Any]:
    content = load_yaml(path, _ledger(path.parent.name))
    if not isinstance(content or [], list):
        raise EncoreError(f"{_ledger(path.parent.name)} must hold a list of entries, each with a `- field:`")
    return content or []


def _entry(value: Any, path: Path) -> Entry:
    field = value.get("field", "an entry") if isinstance(value, dict) else "an entry"
    place = f"{_ledger(path.parent.name)}: {field}"
    if not isinstance(value, dict):
        raise EncoreError(f"{place} must be a mapping of field, value, from, place and why (found {str(value)[:60]!r})")
    entry = checked(Entry, {**value, "paper": path.parent.name}, place)
    if entry.origin != "ours" and not entry.place.strip():
        raise EncoreError(f"{place}: says `from: {entry.origin}` and no place; add `place:`, a section or a file")
    if not entry.why.strip():
        raise EncoreError(f"{place}: has no reason; add `why:`")
    return entry


def _uncited(name: str, value: Any) -> str:
    kind, owner, field = name.split(".", 2)
    what = {"steps": f"step {owner!r} in config/steps.yaml", "systems": f"system {owner!r} in config/systems.yaml"}.get(
        kind, f"objective {owner!r}"
    )
    mend = f"add an entry `field: {name}` with its source to {PLACE}"
    entries = "its steps" if kind == "objectives" else "it"
    own = f", or begin the `source:` of {entries} with `{OURS};` where it is no paper's"
    return f"{what}: no ledger says where {field}={_short(value)} comes from; {mend}{own}"


def _ledger(paper: str) -> str:
    return PLACE.replace("<paper>", paper)


def _fields(place: str, model: BaseModel) -> dict[str, Any]:
    return {f"{place}.{key}": _plain(getattr(model, key)) for key in type(model).model_fields}


def _defaults(fields: type[Step]) -> dict[str, Any]:
    """The fields of an objective that have a default value."""
    return {
        key: _plain(field.get_default())
        for key, field in fields.model_fields.items()
        if not field.is_required() and key not in PLUMBING
    }


def _written_values(system: System) -> set[str]:
    """The fields of a system that are neither left at their default nor names."""
    return {key for key in system.model_fields_set if not isinstance(getattr(system, key), str)}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _short(value: Any) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, list | tuple) else str(value)


def _place(entry: Entry) -> str:
    return f"{entry.paper}: {entry.place}" if entry.place else entry.paper

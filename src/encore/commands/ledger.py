"""Where every value of an experiment comes from: the papers' ledgers, and the check that nothing runs without a source.

A ledger, ``config/papers/<paper>/ledger.yaml``, is a list of sources, each with the fields that come from it and why. A
field is a place in the configuration: ``steps.<step>.<field>`` (as it is in effect), ``objectives.<objective>.<field>``
(its default), ``backbones.…``, ``systems.…``, ``datasets.…``, ``measures.<dataset>.<split>.<name>``, or ``config.…`` in
the default run's file, which is its user's to change and is not checked. ``tables.<paper>/<table>.<row>`` is a row that
is only printed, with the reason why nothing runs it. Braces list several names,
``steps.{ae,ar}.batch``; a star is every name without its own entry. The values are in the configuration alone.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from encore.commands.plan import plan_of
from encore.config.entries import PretrainStep, Step
from encore.config.groups import alternatives
from encore.config.run_file import read_run
from encore.config.strict import Strict
from encore.config.validation import checked, load_yaml, nearest
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue, read_step
from encore.plan.scale import with_single_names
from encore.storage.program_files import CATALOGUE

PLACE = "config/papers/<paper>/ledger.yaml"
OURS = "ours"  # how the `source:` of a step begins that is no paper's and vouches for itself
PLUMBING = {"kind", "objective", "collection", "source"}
RECIPE = {"warmup", "schedule", "weight_decay", "max_grad_norm", "held_out"}  # in effect even if a step sets none
RUN = "config."  # how the fields of a run begin


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument("--paper", help="one paper's ledger: a folder of config/papers")


def answer(arguments: argparse.Namespace) -> int:
    """A line for each value with its source and the reason; checked first."""
    catalogue = plan_of(arguments).catalogue
    check(catalogue, CATALOGUE)
    entries = read(CATALOGUE)
    papers = {entry.paper for entry in entries}
    if arguments.paper is not None and arguments.paper not in papers:
        raise EncoreError(f"there is no ledger of {arguments.paper!r}{nearest(arguments.paper, papers)}")
    shown = [entry for entry in entries if arguments.paper in (None, entry.paper)]
    print(table(shown, catalogue, CATALOGUE))
    return 0


class Source(Strict):
    """One source, with the fields whose values come from it."""

    origin: Literal["paper", "code", "inferred", "ours"] = Field(alias="from")
    place: str = Field("", description="section, table or equation of the paper; repository and path of the code")
    fields: dict[str, str] = Field(
        min_length=1, description="each with why it has its value; where paper and code part, what runs the other one"
    )


@dataclass(frozen=True)
class Entry:
    """The source of one field, or of all that its star matches; ``paper`` is the folder of its ledger."""

    field: str
    origin: str
    place: str
    why: str
    paper: str


def read(folder: Path) -> list[Entry]:
    """Every entry of every ledger below ``folder``, in the order of papers and lines, with braces written out."""
    paths = sorted((folder / "papers").glob("*/ledger.yaml"))
    return [entry for path in paths for value in _written(path) for entry in _entries(value, path)]


def check(catalogue: Catalogue, folder: Path) -> None:
    """Refuse a value without a source, and a source of what is not there."""
    configured = values(catalogue)
    cited = sources(read(folder), set(configured))
    for name in needed(catalogue):
        if name not in cited:
            raise EncoreError(_uncited(name, configured[name]))


def changed_source(before: Catalogue, after: Catalogue, folder: Path) -> str:
    """What to rewrite after a change: the first field whose source is given for another value; empty for none."""
    check(after, folder)
    old, new = values(before), values(after)
    for name, entry in sources(read(folder), set(new)).items():
        if name in old and old[name] != new[name]:
            return (
                f"{_ledger(entry.paper)} says where {name}={short(old[name])} comes from; write there where "
                f"{short(new[name])} does"
            )
    return ""


def values(catalogue: Catalogue) -> dict[str, Any]:
    """The value at every place of the catalogue that an entry can be about, as written there."""
    found: dict[str, Any] = {}
    for name, written in catalogue.steps.items():
        step = read_step(written)
        found |= _fields(f"steps.{name}", step) | {f"steps.{name}.{key}": value for key, value in written.items()}
        if isinstance(step, PretrainStep):
            found |= {f"objectives.{step.objective}.{key}": value for key, value in _defaults(type(step)).items()}
    for kind, models in (("backbones", catalogue.backbones), ("systems", catalogue.systems)):
        for name, model in models.items():
            found |= _fields(f"{kind}.{name}", model)
    for name, dataset in catalogue.datasets.items():
        found |= _fields(f"datasets.{name}", dataset)
        for split, fields in dataset.splits.items():
            found |= {f"measures.{name}.{split}.{called}": measure for called, measure in fields.measures.items()}
    for name, table in catalogue.tables.items():
        found |= {f"tables.{name}.{row.id}": row.reported_only for row in table.rows if row.reported_only}
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
            written_keys = {key for key in system.model_fields_set if not isinstance(getattr(system, key), str)}
            yield from (f"systems.{name}.{key}" for key in sorted(written_keys))


def sources(entries: list[Entry], known: set[str]) -> dict[str, Entry]:
    """The entry of each place; entries with names override those with stars."""
    cited: dict[str, Entry] = {}
    general: dict[str, Entry] = {}
    for entry in entries:
        name = entry.field
        if name.startswith(RUN):
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


def table(entries: list[Entry], catalogue: Catalogue, folder: Path) -> str:
    """The ledgers for people: a line for each field with its value, in columns."""
    configured = values(catalogue)
    run: dict[str, Any] = {}
    if any(entry.field.startswith(RUN) for entry in entries):
        run = with_single_names(read_run(folder / "config.yaml"), catalogue).model_dump()
    lines = [("field", "value", "from", "place", "why")]
    lines += [
        (entry.field, short(_value(entry, configured, run)), entry.origin, place_of(entry), entry.why)
        for entry in entries
    ]
    return "\n".join(aligned(lines))


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines of cells as text in columns, of which the last one may be ragged."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)][:-1]
    return ["  ".join([*map(str.ljust, line, widths), line[-1]]) for line in lines]


def _value(entry: Entry, configured: dict[str, Any], run: dict[str, Any]) -> Any:
    """The value of a field; a star has that of all that it is about."""
    name = entry.field
    if name.startswith(RUN):
        found: Any = run
        for key in name.removeprefix(RUN).split("."):
            found = found.get(key, "not set") if isinstance(found, dict) else found
        return found
    if "*" not in name:
        return configured[name]
    fitting = {str(value): value for each, value in configured.items() if fnmatchcase(each, name)}
    if len(fitting) != 1:
        raise EncoreError(f"{_ledger(entry.paper)}: {name} is {' and '.join(fitting)}; an entry is about one value")
    return next(iter(fitting.values()))


def _written(path: Path) -> list[Any]:
    content = load_yaml(path, _ledger(path.parent.name))
    if not isinstance(content or [], list):
        raise EncoreError(f"{_ledger(path.parent.name)} must hold a list of sources, each with a `- from:`")
    return content or []


def _entries(value: Any, path: Path) -> Iterator[Entry]:
    ledger = _ledger(path.parent.name)
    if not isinstance(value, dict):
        raise EncoreError(f"{ledger}: a source must be a mapping of from, place and fields (found {str(value)[:60]!r})")
    fields = value.get("fields") or value.get("field") or "a source"
    first = f"{ledger}: {next(iter(fields)) if isinstance(fields, dict) else fields}"
    source = checked(Source, value, first)
    if source.origin != "ours" and not source.place.strip():
        raise EncoreError(f"{first}: says `from: {source.origin}` and no place; add `place:`, a section or a file")
    for field, why in source.fields.items():
        if not why.strip():
            raise EncoreError(f"{ledger}: {field}: has no reason; write behind it why it has its value")
        for name in alternatives(field):
            yield Entry(name, source.origin, source.place, why, path.parent.name)


def _uncited(name: str, value: Any) -> str:
    kind, owner, field = name.split(".", 2)
    what = {"steps": f"step {owner!r} in config/steps.yaml", "systems": f"system {owner!r} in config/systems.yaml"}.get(
        kind, f"objective {owner!r}"
    )
    fix = f"add `{name}` with its reason under its source to {PLACE}"
    entries = "its steps" if kind == "objectives" else "it"
    own = f", or begin the `source:` of {entries} with `{OURS};` where it is no paper's"
    return f"{what}: no ledger says where {field}={short(value)} comes from; {fix}{own}"


def _ledger(paper: str) -> str:
    return PLACE.replace("<paper>", paper)


def _fields(place: str, model: BaseModel) -> dict[str, Any]:
    return {f"{place}.{key}": plain(getattr(model, key)) for key in type(model).model_fields}


def _defaults(fields: type[Step]) -> dict[str, Any]:
    """The fields of an objective that have a default value."""
    return {
        key: plain(field.get_default())
        for key, field in fields.model_fields.items()
        if not field.is_required() and key not in PLUMBING
    }


def plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def short(value: Any) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, list | tuple) else str(value)


def place_of(entry: Entry) -> str:
    return f"{entry.paper}: {entry.place}" if entry.place else entry.paper

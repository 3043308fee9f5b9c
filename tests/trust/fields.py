"""One field of one file of a finished run changed, whatever it is: each key of each manifest, plan, slice and record.

A field is the keys that lead to it. It is deleted, emptied, or gets another value or one of another type; the digests
above it are then redone, as whoever forges it would.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finished_run import MANIFEST, FinishedRun, Json
from forgeries import PAGE_MANIFEST, redo_digests

Keys = tuple[str | int, ...]
CHANGES = ("deleted", "emptied", "another value", "another type")


@dataclass(frozen=True)
class Field:
    """A field of a file, and what is done to it."""

    place: str
    keys: Keys
    change: str

    @property
    def is_left_to_people(self) -> bool:
        """Whether nothing in the folder contradicts it, as docs/trust.md lists: only a note or the root tells."""
        is_form = self.change in ("deleted", "another type")
        match self.kind, self.keys[0]:
            case "artifact", "results":
                return not ((is_form and len(self.keys) == 1) or self.place.startswith("results/scores/"))
            case "product" | "page", "code":
                return not is_form
            case kind, _:
                return kind == "record"

    @property
    def kind(self) -> str:
        """Of the file: a manifest of an artifact, a product or the page, or a record that nothing seals."""
        if not self.place.endswith(MANIFEST):
            return "record"
        if self.place == PAGE_MANIFEST:
            return "page"
        return "artifact" if Path(self.place).name == MANIFEST else "product"

    def __str__(self) -> str:
        return f"{self.place}: {'.'.join(map(str, self.keys))} {self.change}"


def fields(run: FinishedRun) -> list[Field]:
    """All of them."""
    manifests = [*(f"{folder}/{MANIFEST}" for folder in run.manifests), *run.products, PAGE_MANIFEST]
    records = [f"{folder}/run.json" for folder in run.manifests] + ["results/root.json"]
    plans = [path.relative_to(run.root) for path in sorted((run.results / "plan").rglob("*.json"))]
    found = []
    for place in (*manifests, *records, *map(str, plans)):
        content = json.loads((run.root / place).read_text())
        for keys in _keys(content):
            value = at(content, keys)
            new = (change for change in CHANGES if change == "deleted" or _changed(value, change) is not None)
            found += [Field(place, keys, change) for change in new]
    return found


def apply(run: FinishedRun, field: Field) -> None:
    """Change a field, and redo the digests above it."""

    def change(content: Json) -> None:
        holder = at(content, field.keys[:-1])
        if field.change == "deleted":
            del holder[field.keys[-1]]
        else:
            (holder[field.keys[-1]],) = _changed(holder[field.keys[-1]], field.change) or ()

    run.edit(field.place, change)
    if field.kind not in ("page", "record"):
        redo_digests(run)


def at(content: Any, keys: Keys) -> Any:
    """The part of some JSON that keys lead to."""
    for key in keys:
        content = content[key]
    return content


def _keys(content: Any, before: Keys = ()) -> Iterator[Keys]:
    entries = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in entries:
        yield (*before, key)
        yield from _keys(value, (*before, key))


def _changed(value: Any, change: str) -> tuple[Any] | None:
    """Another value in a tuple; nothing where the change leaves what there is."""
    match change, value:
        case "emptied", _:
            new = type(value)() if value is not None else None
        case "another value", bool():
            new = not value
        case "another value", int() | float():
            new = value + 1
        case "another value", str():
            new = value[::-1] if value[::-1] != value else f"{value}x"
        case "another value", list():
            new = value[::-1] if value[::-1] != value else [*value, *value[:1]]
        case "another value", dict():
            new = dict(zip(value, [*value.values()][::-1], strict=True))
        case "another type", str() | None:
            new = 7
        case "another type", bool():
            new = int(value)
        case "another type", int():
            new = float(value)
        case "another type", float():
            new = str(value)
        case "another type", _:
            new = [*value] if isinstance(value, dict) else dict.fromkeys(map(str, value))
        case _:
            return None
    return None if json.dumps(new, sort_keys=True) == json.dumps(value, sort_keys=True) else (new,)


def drawn(found: list[Field], chance: random.Random, of_each: int) -> list[Field]:
    """So many fields of each kind of file under each first key, so that long ones do not crowd out the rest."""
    groups: dict[tuple[str, str | int], list[Field]] = {}
    for field in found:
        groups.setdefault((field.kind, field.keys[0] if field.kind != "record" else ""), []).append(field)
    return [field for group in groups.values() for field in chance.sample(group, min(of_each, len(group)))]

"""Names of experiments: ``bert-base+costa~temperature=0.05+marco-bm25`` says what happened to a model's weights.

A name has one spelling only, so that a folder can be found from it. This file knows the grammar, ``resolver.py`` the
members. ``…@hnsw`` behind it names the index that its vectors are searched in; without, they are searched exactly.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from encore.errors import EncoreError

NAME = r"[a-z0-9][a-z0-9_.-]*"
VALUE = r"[a-z0-9_.-]+"
STEP = rf"{NAME}(?:~[a-z_]+={VALUE})*"
_BACKBONE = re.compile(NAME)
_STEP = re.compile(STEP)
_NUMBER = re.compile(r"-?\d+(\.\d*)?(e-?\d+)?|-?\.\d+(e-?\d+)?")


@dataclass(frozen=True)
class StepName:
    """One step of a lineage and the fields that its name overrides."""

    name: str
    overrides: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self.name + "".join(f"~{key}={value}" for key, value in self.overrides)

    def values(self) -> dict[str, Any]:
        """The overrides as numbers, booleans and words."""
        return {key: scalar(value) for key, value in self.overrides}


@dataclass(frozen=True)
class Lineage:
    """A backbone and the steps that its weights took."""

    backbone: str
    steps: tuple[StepName, ...] = ()

    def __str__(self) -> str:
        return "+".join([self.backbone, *map(str, self.steps)])

    @property
    def parent(self) -> "Lineage":
        """The lineage without its last step."""
        return Lineage(self.backbone, self.steps[:-1])


def split_index(text: str) -> tuple[str, StepName | None]:
    """A system's name as its lineage and the index it is searched in, None for exact search."""
    lineage, at, index = text.partition("@")
    if not at:
        return text, None
    if not _STEP.fullmatch(index):
        raise EncoreError(f"system {text!r}: {index!r} is not `index` or `index~key=value` of config/indexes.yaml")
    read = _canonical_step(index, text)
    if str(read) != index:
        raise EncoreError(f"system {text!r} must be spelled {f'{lineage}@{read}'!r}: keys in order, short numbers")
    return lineage, read


@cache  # a plan reads each of its names about fifty times
def parse(text: str) -> Lineage:
    """Read a lineage in its one spelling."""
    backbone, *steps = text.split("+")
    for part in steps:
        if not _STEP.fullmatch(part):
            raise EncoreError(
                f"lineage {text!r}: {part!r} is not `step` or `step~key=value`, in letters a-z, digits and _ . - only"
            )
    if not _BACKBONE.fullmatch(backbone):
        raise EncoreError(
            f"lineage {text!r}: {backbone!r} is not the name of a backbone (letters a-z, digits and _ . - only)"
        )
    lineage = Lineage(backbone, tuple(_canonical_step(part, text) for part in steps))
    if str(lineage) != text:
        raise EncoreError(
            f"lineage {text!r} must be spelled {str(lineage)!r}: keys in order, numbers in their shortest form"
        )
    return lineage


def scalar(text: str) -> Any:
    """The value of an override: true, false, a number, or a word."""
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        number = float(text)
        return int(number) if number.is_integer() and "e" not in text.lower() else number
    return text


def spelled(value: Any) -> str:
    """The one spelling of an override's value: numbers in their shortest form."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, float):
        return re.sub(r"e([+-])0*(\d+)", lambda match: f"e{match[1].strip('+')}{match[2]}", repr(value))
    return str(value)


def _canonical_step(part: str, text: str) -> StepName:
    name, *pairs = part.split("~")
    overrides = dict(pair.split("=") for pair in pairs)
    if len(overrides) < len(pairs):
        raise EncoreError(f"lineage {text!r}: {name!r} overrides a field twice; keep one")
    return StepName(name, tuple((key, spelled(scalar(value))) for key, value in sorted(overrides.items())))

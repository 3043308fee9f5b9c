"""The kinds of figures of ``papers/<paper>/figures.yaml``: one line each."""

import json
from pathlib import Path
from typing import Any

from encore.config.validation import by_kind
from encore.errors import EncoreError
from encore.products.figures import coverage, growth, heat, labels, words
from encore.products.figures import map as neighbours
from encore.products.figures.base import FigureEntry, FigureKind

KINDS: dict[str, FigureKind] = {
    "growth": growth.KIND,
    "labels": labels.KIND,
    "coverage": coverage.KIND,
    "words": words.KIND,
    "heat": heat.KIND,
    "map": neighbours.KIND,
}


def read_entry(fields: dict[str, Any]) -> FigureEntry:
    """Check a figure's entry by its ``kind``."""
    return by_kind(fields, {name: kind.entry for name, kind in KINDS.items()}, "figure")


def kind_of(plan: Path) -> FigureKind:
    """The kind of figure that a slice of the plan is of.

    Raises:
        EncoreError: there is no such file, or it is not a slice of a figure.
    """
    try:
        kind: Any = json.loads(plan.read_text())["kind"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoreError(f"{plan} is no slice of a figure; let the workflow write the plan again") from error
    if kind not in KINDS:
        raise EncoreError(f"{plan}: figures of kind {kind!r} cannot be drawn; let the workflow write the plan again")
    return KINDS[kind]

"""The papers' figures and our own, drawn from their slices of the plan: one module for each kind."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.reporting.figures import coverage, curve, heat, neighbours, words
from encore.reporting.figures.base import Figure

# What a slice of each kind is, and what draws it: (folder, figure).
KINDS: dict[str, tuple[type[Figure], Callable[[Path, Any], None]]] = {
    "growth": (curve.Curves, curve.draw),
    "labels": (curve.Curves, curve.draw),
    "coverage": (coverage.Coverage, coverage.draw),
    "words": (words.Words, words.draw),
    "heat": (heat.Heat, heat.draw),
    "map": (neighbours.Map, neighbours.draw),
}


def kind_of(plan: Path) -> str:
    """The kind of figure that a slice of the plan is of.

    Raises:
        EncoreError: there is no such file, or it is no slice of a figure.
    """
    try:
        kind: Any = json.loads(plan.read_text())["kind"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoreError(f"{plan} is no slice of a figure; let the workflow write the plan again") from error
    if kind not in KINDS:
        raise EncoreError(f"{plan}: figures of kind {kind!r} cannot be drawn; let the workflow write the plan again")
    return str(kind)

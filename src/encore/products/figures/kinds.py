"""The kinds of figures: what a slice of each is, and what draws it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.products.figures import coverage, curve, heat, words
from encore.products.figures import map as neighbours
from encore.products.figures.base import FigureSlice

# What a slice of each kind is, and what draws it: (folder, figure).
KINDS: dict[str, tuple[type[FigureSlice], Callable[[Path, Any], None]]] = {
    "growth": (curve.CurvesSlice, curve.draw_curves),
    "labels": (curve.CurvesSlice, curve.draw_curves),
    "coverage": (coverage.CoverageSlice, coverage.draw_coverage),
    "words": (words.WordsSlice, words.draw_words),
    "heat": (heat.HeatSlice, heat.draw_heat),
    "map": (neighbours.MapSlice, neighbours.draw_map),
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

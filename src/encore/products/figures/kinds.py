"""The kinds of figures of ``papers/<paper>/figures.yaml``: one line each."""

from pathlib import Path
from typing import Any

from encore.config.validation import by_kind
from encore.products.figures import coverage, growth, heat, labels, words
from encore.products.figures import map as neighbours
from encore.products.figures.base import FigureEntry, FigureKind, FigureSlice

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


def typed_figure(content: Any) -> FigureSlice:
    """The slice of a figure of any kind."""
    return KINDS[content["kind"]].slice.model_validate(content)


def write_figure(folder: Path, figure: FigureSlice, products: Path) -> str:
    """Draw a figure of any kind."""
    KINDS[figure.kind].write(folder, figure)
    return f"figure {figure.name}: {folder / figure.name}.png"

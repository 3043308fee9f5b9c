"""Columns of losses: what a pre-training step's loss on held-out texts was in the end. Nothing is tested on them."""

from collections.abc import Mapping
from pathlib import Path

from encore.errors import EncoreError
from encore.products import loss_curves
from encore.products.slices import Unit
from encore.products.tables.layout import CellSlice, Column, Layout
from encore.products.tables.sources.base import CellSource, CellValues


class HeldOutLoss(CellSource):
    """The last value of a term of the loss, for each seed; nothing for a model that no step pre-trained.

    Not ranked: a step that keeps most of its budget for other terms is no worse for it.
    """

    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """The last recorded value of a loss term, for each seed's model.

        Raises:
            EncoreError: a record of losses is missing or damaged, or lacks the term.
        """
        if not request.reads:
            return None
        seeds, folders = [read.seed for read in request.reads], [Path(read.folder) for read in request.reads]
        return CellValues(seeds, [_last(folder / loss_curves.FILE, request.value) for folder in folders])

    def named(self, request: CellSlice, column: Column) -> str:
        """The loss term, as held-out."""
        return f"held-out {request.value}"

    def shown(self, value: float, unit: Unit) -> str:
        """A loss with four digits."""
        return f"{value:.4f}"

    def notes(self, layout: Layout) -> list[str]:
        """When and on which texts the losses of each column were measured."""
        labels = [column.label for column in layout.columns if column.source == "held_out"]
        return [f"{label}: at the end of the last pre-training step, on its own held-out texts." for label in labels]


def _last(path: Path, term: str) -> float:
    terms, points = loss_curves.read_loss_table(path)
    if term not in terms[1:] or not len(points):
        known = ", ".join(terms[1:]) or "nothing"
        raise EncoreError(
            f"{path} has no {term!r}, only {known}; say under the row's `not_applicable` that it has no such loss"
        )
    return float(points[-1, terms.index(term)])

"""Columns of losses: a pre-training step's loss on held-out texts at its end. Nothing is tested on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from encore.errors import EncoreError
from encore.products.slices import Unit
from encore.products.tables.grid import CellSlice, Column, Grid
from encore.products.tables.sources.base import CellSource, CellValues, Parts, Reads, by_seed, last_pretrained

if TYPE_CHECKING:
    from encore.plan.plan import Plan

FILE = "held_out.tsv"


class HeldOutLoss(CellSource):
    """The last value of a term of the loss, for each seed; nothing for a model that no step pre-trained.

    Not ranked: a step that keeps most of its budget for other terms is no worse for it.
    """

    field = (
        str | None,
        Field(
            None,
            description="Or: the named term of the last pre-training step's loss on held-out texts, at the "
            "end of the step.",
        ),
    )
    needs = ("system",)
    files = (FILE,)

    def reads(self, plan: Plan, request: CellSlice) -> Reads:
        """The models that the system's last pre-training step ends with; nothing where it has none."""
        last = last_pretrained(plan, request)
        return Reads(tuple((seed, plan.model(last, seed)) for seed in plan.config.seeds) if last else ())

    def values(self, request: CellSlice, parts: Parts) -> CellValues | None:
        """The last recorded value of a loss term, for each seed's model.

        Raises:
            EncoreError: a record of losses is missing or damaged, or lacks the term.
        """
        return by_seed(request, lambda folder: _last(folder / FILE, request.value))

    def named(self, request: CellSlice, column: Column) -> str:
        """The loss term, as held-out."""
        return f"held-out {request.value}"

    def shown(self, value: float, unit: Unit) -> str:
        """A loss with four digits."""
        return f"{value:.4f}"

    def notes(self, own: list[Column], grid: Grid) -> list[str]:
        """When and on which texts the losses of each column were measured."""
        return [f"{one.label}: at the end of the last pre-training step, on its own held-out texts." for one in own]


def _last(path: Path, term: str) -> float:
    from encore.products import loss_curves

    terms, points = loss_curves.read_loss_table(path)
    if term not in terms[1:] or not len(points):
        known = ", ".join(terms[1:]) or "nothing"
        raise EncoreError(
            f"{path} has no {term!r}, only {known}; say under the row's `not_applicable` that it has no such loss"
        )
    return float(points[-1, terms.index(term)])

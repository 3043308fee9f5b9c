"""Columns of how well models tell masked words of a collection, under one mask for all. Nothing is tested on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from encore.errors import EncoreError
from encore.products.slices import Unit
from encore.products.tables.grid import CellSlice, Column, Grid
from encore.products.tables.sources.base import CellSource, CellValues, Parts, Reads, before_finetuning

if TYPE_CHECKING:
    from encore.plan.plan import Plan

FILE = "loss.json"


class MaskedLoss(CellSource):
    """The MLM loss, for each seed; nothing for a model without a head that tells words. The lowest is the best."""

    field = (
        str | None,
        Field(
            None,
            description="Or: the MLM loss on the dataset's passages, masked for all models as the named step masks.",
        ),
    )
    needs = ("system", "dataset")
    best = "lowest"

    def reads(self, plan: Plan, request: CellSlice) -> Reads:
        """The loss of the system's last pre-trained model, or of its start, on masked passages of the dataset."""
        last = before_finetuning(plan, request)
        if last is None:
            return Reads()
        found = ((seed, plan.masked_loss(last, seed, request.dataset, request.value)) for seed in plan.config.seeds)
        return Reads(tuple(found), plan.collection(request.dataset).name)

    def values(self, request: CellSlice, parts: Parts) -> CellValues | None:
        """The loss on masked words of each seed's model, in nats; None where a model has no vocabulary head.

        Raises:
            EncoreError: a measured loss is missing or damaged.
        """
        found = [_loss(Path(read.folder) / FILE) for read in request.reads]
        losses = [loss for loss in found if loss is not None]
        return (
            CellValues([read.seed for read in request.reads], losses) if losses and len(losses) == len(found) else None
        )

    def named(self, request: CellSlice, column: Column) -> str:
        """The loss with the way in which the models read the passages."""
        return f"masked loss as {request.value}"

    def unit(self, request: CellSlice, unit: Unit) -> str:
        """Losses are in nats."""
        return "nats"

    def shown(self, value: float, unit: Unit) -> str:
        """A loss with four digits."""
        return f"{value:.4f}"

    def notes(self, own: list[Column], grid: Grid) -> list[str]:
        """How the losses were measured, and which rows have none because their models have no vocabulary head."""
        where = "after the last pre-training step, on passages of the collection, the same words masked for all models"
        notes = dict.fromkeys(f"{column.label}: {where}; lower is better." for column in own)
        cells = ((row, row.cells[column.id]) for column in own for row in grid.rows)
        bare = [row.label for row, request in cells if request.reads and self.values(request, {}) is None]
        without = [f"No vocabulary head, so no loss on masked words: {', '.join(dict.fromkeys(bare))}."] if bare else []
        return [*notes, *without]


def _loss(path: Path) -> float | None:
    try:
        loss = json.loads(path.read_text())["loss"]
        return None if loss is None else float(loss)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EncoreError(f"{path} is no measured loss ({error}); remove its folder and run snakemake again") from error

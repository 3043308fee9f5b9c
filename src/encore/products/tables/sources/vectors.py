"""Columns of how models' vectors of texts are distributed. Nothing is tested on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from encore.products.tables.grid import CellRequest, Column, Grid
from encore.products.tables.sources import base

if TYPE_CHECKING:
    from encore.plan.plan import Plan

FILE = "inspection.json"
MEANING = {
    "cosine": "the mean cosine of the vectors of two texts",
    "effective_dimension": "in how many directions vectors spread: the participation ratio of their centred spectrum",
    "own_half": "the share of texts whose first half is nearest, by cosine, to its own second half among all",
}


class Vectors(base.CellSource):
    """A number of a model's vectors, for each seed. None is the best: a model whose vectors spread may be bad."""

    field = base.optional(
        Literal[
            "cosine", "effective_dimension", "own_half", "mean_cosine", "mean_effective_dimension", "mean_own_half"
        ],
        "how the vectors of the dataset's texts are distributed after the last pre-training step, as the model pools "
        "or, with `mean_`, for the mean of all states.",
    )
    needs = ("system", "dataset")
    name = "vectors: {value}"
    form = "{:.2f}"

    def reads(self, plan: Plan, request: CellRequest) -> CellRequest:
        """The vectors of the system's last pre-trained model, or of its start, of passages of the dataset."""
        last = base.before_finetuning(plan, request)
        if last is None:
            return request
        found = ((seed, plan.inspect_vectors(last, seed, request.dataset)) for seed in plan.config.seeds)
        return request.reading(found, plan.collection(request.dataset))

    def values(self, request: CellRequest, parts: base.Parts) -> base.CellValues | None:
        """The number of each seed's model."""
        return base.by_seed(request, lambda folder: base.number_in(folder / FILE, request.value))

    def notes(self, own: Sequence[Column], grid: Grid) -> list[str]:
        """What each column is, and when it was measured."""
        if not own:
            return []
        when = "Vectors are of a sample of passages, after pre-training, before fine-tuning and any linear head."
        values = {cell.value for cell in grid.cells(own)} - {""}
        kinds = dict.fromkeys(value.removeprefix("mean_") for value in sorted(values))
        return [when, *(f"{kind.replace('_', ' ').capitalize()}: {MEANING[kind]}." for kind in kinds)]

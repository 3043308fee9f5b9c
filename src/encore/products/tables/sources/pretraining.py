"""Columns of what pre-training leaves: losses, and how vectors of texts are distributed. Nothing is tested on them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.tables.grid import CellRequest, Column, Grid
from encore.products.tables.sources import base
from encore.storage.typed import REMAKE

if TYPE_CHECKING:
    import numpy as np

HELD_OUT, MASKED = "held_out.tsv", "loss.json"
VECTORS = "inspection.json"
MEANING = {
    "cosine": "the mean cosine of the vectors of two texts",
    "effective_dimension": "in how many directions vectors spread: the participation ratio of their centred spectrum",
    "own_half": "the share of texts whose first half is nearest, by cosine, to its own second half among all",
}


class HeldOutLoss(base.CellSource):
    """The last value of a term of the loss, for each seed; nothing for a model that no step pre-trained.

    Not ranked: a step that keeps most of its budget for other terms is not worse for it.
    """

    field = base.optional(
        str, "the named term of the last pre-training step's loss on held-out texts, at the end of the step."
    )
    needs = ("system",)
    files = (HELD_OUT,)
    name = "held-out {value}"
    form = "{:.4f}"

    def reads(self, plan: Plan, request: CellRequest) -> CellRequest:
        """The models that the system's last pre-training step ends with; nothing where it has none."""
        last = base.last_pretrained(plan, request)
        return request.reading((seed, plan.model(last, seed)) for seed in plan.config.seeds) if last else request

    def values(self, request: CellRequest, parts: base.Parts) -> base.CellValues | None:
        """The last recorded value of a loss term, for each seed's model."""
        return base.by_seed(request, lambda folder: _last(folder / HELD_OUT, request.value))

    def notes(self, own: Sequence[Column], grid: Grid) -> list[str]:
        """When and on which texts the losses of each column were measured."""
        return [f"{one.label}: at the end of the last pre-training step, on its own held-out texts." for one in own]


class MaskedLoss(base.CellSource):
    """The MLM loss, for each seed; nothing for a model without a head that tells words. The lowest is the best."""

    field = base.optional(str, "the MLM loss on the dataset's passages, masked for all models as the named step masks.")
    needs = ("system", "dataset")
    best = "lowest"
    name = "masked loss as {value}"
    form = "{:.4f}"
    amounts = "nats"

    def reads(self, plan: Plan, request: CellRequest) -> CellRequest:
        """The loss of the system's last pre-trained model, or of its start, on masked passages of the dataset."""
        last = base.before_finetuning(plan, request)
        if last is None:
            return request
        found = ((seed, plan.masked_loss(last, seed, request.dataset, request.value)) for seed in plan.config.seeds)
        return request.reading(found, plan.collection(request.dataset))

    def values(self, request: CellRequest, parts: base.Parts) -> base.CellValues | None:
        """The loss on masked words of each seed's model, in nats; None where a model has no vocabulary head."""
        losses = [json.loads(Path(read.folder, MASKED).read_text())["loss"] for read in request.reads]
        return base.CellValues([read.seed for read in request.reads], losses) if losses and None not in losses else None

    def notes(self, own: Sequence[Column], grid: Grid) -> list[str]:
        """How the losses were measured, and which rows have none because their models have no vocabulary head."""
        where = "after the last pre-training step, on passages of the collection, the same words masked for all models"
        notes = dict.fromkeys(f"{column.label}: {where}; lower is better." for column in own)
        cells = ((row, row.cells[column.id]) for column in own for row in grid.rows)
        bare = [row.label for row, request in cells if request.reads and self.values(request, {}) is None]
        without = [f"No vocabulary head, so no loss on masked words: {', '.join(dict.fromkeys(bare))}."] if bare else []
        return [*notes, *without]


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
        return base.by_seed(request, lambda folder: base.number_in(folder / VECTORS, request.value))

    def notes(self, own: Sequence[Column], grid: Grid) -> list[str]:
        """What each column is, and when it was measured."""
        if not own:
            return []
        when = "Vectors are of a sample of passages, after pre-training, before fine-tuning and any linear head."
        values = {cell.value for cell in grid.cells(own)} - {""}
        kinds = dict.fromkeys(value.removeprefix("mean_") for value in sorted(values))
        return [when, *(f"{kind.replace('_', ' ').capitalize()}: {MEANING[kind]}." for kind in kinds)]


def _last(path: Path, term: str) -> float:
    terms, points = read_loss_table(path)
    if term not in terms[1:] or not len(points):
        known = ", ".join(terms[1:]) or "nothing"
        raise EncoreError(
            f"{path} has no {term!r}, only {known}; say under the row's `not_applicable` that it has no such loss"
        )
    return float(points[-1, terms.index(term)])


def read_loss_table(path: Path) -> tuple[list[str], np.ndarray]:
    """Names of the columns and rows [points, columns] of ``held_out.tsv``; no rows where nothing was held out."""
    import numpy as np

    if not path.is_file():
        raise EncoreError(f"{path} is missing: nothing says what the model learned; run snakemake for it again")
    header, *lines = (line.split("\t") for line in path.read_text().splitlines() or [""])
    if header == ["step"] and not lines:
        return header, np.empty((0, 1))
    try:
        rows = np.array([[float(cell) for cell in line] for line in lines])
    except ValueError:
        rows = np.empty(0)
    if header[:2] != ["step", "loss"] or rows.shape != (len(lines), len(header)) or not np.isfinite(rows).all():
        raise EncoreError(f"{path} is no table of the losses at each step; {REMAKE}")
    return header, rows

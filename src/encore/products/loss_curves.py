"""Learning curves of each pre-training step of a run: losses on held-out texts, read from the folders of its models."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from encore.errors import EncoreError
from encore.products.figures.base import LOSSES, StepModels, StepsSlice
from encore.storage.csv_rows import number, write_rows
from encore.storage.typed import REMAKE

COLUMNS = {
    "step": "The pre-training step.",
    "lineage": "The lineage that ends with it.",
    "seed": "The seed.",
    "training_step": "Optimiser steps so far.",
    "term": "The term of the loss.",
    "value": "Its value, in nats for cross-entropies.",
}


@dataclass(frozen=True)
class LossTerm:
    """A term of a step's loss over the training: ``values`` [seeds, points]."""

    name: str
    values: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Over seeds [points]."""
        mean: np.ndarray = self.values.mean(axis=0)
        return mean

    def starts_above_zero(self) -> bool:
        """Whether its changes can be given as shares of the start."""
        return bool((self.values[:, 0] > 0).all())


@dataclass(frozen=True)
class LossCurves:
    """The learning curves of one step: ``at`` [points] are training steps, from 0 (before the first) to the last.

    A step with too few texts to hold any out has no points and no terms.
    """

    step: StepModels
    at: np.ndarray
    terms: list[LossTerm]

    def drawn(self) -> list[LossTerm]:
        """The terms that make up the loss; where none is recorded, the loss itself."""
        parts = [term for term in self.terms if term.name != "loss" and "accuracy" not in term.name]
        return parts or [term for term in self.terms if term.name == "loss"]


def read_loss_curves(steps: StepsSlice) -> list[LossCurves]:
    """The curves of every step."""
    return [_curves(step) for step in steps.rows]


def write_loss_curves(path: Path, curves: Sequence[LossCurves]) -> None:
    """All numbers as data: one line a value, in the order of the steps, seeds, training steps and terms."""
    rows = [
        [one.step.step, one.step.lineage, str(seed.seed), str(at), term.name, number(float(term.values[row, column]))]
        for one in curves
        for row, seed in enumerate(one.step.seeds)
        for column, at in enumerate(one.at)
        for term in one.terms
    ]
    write_rows(path, COLUMNS, rows)


def _curves(step: StepModels) -> LossCurves:
    paths = [Path(seed.model) / LOSSES for seed in step.seeds]
    tables = [read_loss_table(path) for path in paths]
    names, first = tables[0]
    for path, (others, points) in zip(paths, tables, strict=True):
        if others != names or not np.array_equal(points[:, 0], first[:, 0]):
            raise EncoreError(f"{path} has other columns or steps than {paths[0]}; run snakemake for both models again")
    values = np.stack([points for _, points in tables])
    terms = [LossTerm(name, values[:, :, place]) for place, name in enumerate(names) if place > 0]
    return LossCurves(step, first[:, 0].astype(int), terms)


def read_loss_table(path: Path) -> tuple[list[str], np.ndarray]:
    """Names of the columns and rows [points, columns] of ``held_out.tsv``; no rows where nothing was held out."""
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

"""Examples that are never trained on: which they are, and the losses on them while others are learned."""

from functools import partial
from typing import Any

import numpy as np
from torch import Tensor

from encore.models.memory import MicroBatch, PartSize
from encore.training.batches import by_size, split_batch
from encore.training.distributed import ALONE
from encore.training.gradients import TrainingModels, measure_losses
from encore.training.randomness import generator, mixed
from encore.training.task import Task

FEWEST = 50  # examples of a task that can spare some
MOST = 256  # examples held out: enough for a curve
POINTS = 10  # times that losses are measured, about, besides before the first step


def hold_out(task: Task, share: float) -> tuple[np.ndarray, np.ndarray | None]:
    """The numbers of a task's training and of its held-out examples, ascending (None for these if it has 50 or fewer).

    Which examples are held out depends only on their numbers, so it is the same for every seed.
    """
    count = min(max(1, round(share * len(task))), MOST)
    indices = np.arange(len(task))
    if share == 0 or len(task) <= FEWEST:
        return indices, None
    chosen = np.zeros(len(indices), dtype=bool)
    chance = mixed((indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))  # SplitMix64's
    chosen[np.argsort(chance, kind="stable")[:count]] = True
    return indices[~chosen], indices[chosen]


def is_due(step: int, total: int) -> bool:
    """True if losses are measured after this many steps of ``total``."""
    return step in {round(total * point / POINTS) for point in range(POINTS + 1)}


def held_out_losses(
    models: TrainingModels, indices: np.ndarray, batch: int, micro_batch: MicroBatch
) -> dict[str, float]:
    """The loss and its terms over examples of the models' task by number, by name.

    They are means over batches, of which each counts by its examples. The same chance is drawn at every call, whatever
    the seed, so that losses differ only by the weights. A contrast is within random batches of ``batch`` examples, as
    in training; the last one may be smaller.
    """
    task, chance = models.task, partial(generator, 0, "held out")
    if task.has_contrast:
        indices = chance("order").permutation(indices)
    sizes = task.sizes(indices, chance)
    order = by_size(task, sizes, batch)
    indices, sizes = indices[order], sizes[order]
    found: dict[str, list[float]] = {}
    counts = []
    for first in range(0, len(indices), batch):
        chosen = slice(first, first + batch)
        examples = [task.example(index, chance(index)) for index in indices[chosen].tolist()]
        counts.append(len(examples))
        measure = partial(_losses, models, examples, sizes[chosen], first)
        for name, value in micro_batch.fit(measure, sizes[chosen]).items():
            found.setdefault(name, []).append(float(value))
    return {name: float(np.average(values, weights=counts)) for name, values in found.items()}


def _losses(
    models: TrainingModels, examples: list[Any], sizes: np.ndarray, first: int, size: PartSize
) -> dict[str, Tensor]:
    """The terms of a batch that begins with example ``first`` of all."""
    parts = split_batch(models.task, examples, sizes, size, ALONE, 0, "held out", first)
    return measure_losses(models, parts, models.task.loss_weights(0.0))

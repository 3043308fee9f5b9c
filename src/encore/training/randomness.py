"""Where all chance comes from: a stream is a function of the seed and its use, never of what was drawn before.

So masks, spans and orders do not depend on workers, on batches or on an interruption, and no state needs to be saved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from encore.training.task import Task

WINDOW = (
    16  # batches whose examples are sorted by size together: long enough to save padding, short enough to stay random
)


class ExampleBatch(NamedTuple):
    """The examples of a step, and their numbers in the task."""

    indices: list[int]
    examples: list[Any]


def number(seed: int, *key: str | int) -> int:
    """A 63-bit number for this use of the seed, such as ``number(seed, "heads")``."""
    text = "/".join(map(str, (seed, *key)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def generator(seed: int, *key: str | int) -> np.random.Generator:
    """A generator for this use of the seed, such as ``generator(seed, "example", epoch, index)``."""
    return np.random.Generator(np.random.PCG64(number(seed, *key)))


def epoch_order(length: int, batch: int, seed: int, epoch: int) -> np.ndarray:
    """The examples of an epoch in order, [batches, batch] int64: a function of the seed and the epoch.

    A permutation; the last batch is filled up from its beginning, so that every contrast has as many negatives as the
    others and no example stands twice in a batch. With fewer examples than a batch holds, a batch is all of them.
    """
    batch = min(batch, length)
    permutation = generator(seed, "order", epoch).permutation(length)
    rows = -(-length // batch)
    return np.resize(permutation, (rows, batch))


def example_batches(task: Task, batch: int, seed: int, start: int = 0) -> Iterator[ExampleBatch]:
    """The endless sequence of batches from batch number ``start`` on, epoch after epoch."""
    indices = task.indices()
    per_epoch = len(epoch_order(len(task), batch, seed, 0))
    epoch, skip = divmod(start, per_epoch)
    while True:
        rows = indices[epoch_order(len(task), batch, seed, epoch)]
        for first, last in _windows(per_epoch):
            if skip < last:
                yield from _window(task, rows[first:last], seed, epoch, first)[max(skip - first, 0) :]
        epoch, skip = epoch + 1, 0


def _windows(rows: int) -> Iterator[tuple[int, int]]:
    """Runs of batches; the last batch, filled up with examples of the first ones, stays alone."""
    for first in range(0, rows - 1, WINDOW):
        yield first, min(first + WINDOW, rows - 1)
    yield rows - 1, rows


def _window(task: Task, rows: np.ndarray, seed: int, epoch: int, first: int) -> list[ExampleBatch]:
    """The examples of consecutive batches, dealt anew so that those of like size share one; then shuffled."""
    made = [(index, task.example(index, generator(seed, "example", epoch, index))) for index in rows.ravel().tolist()]
    made.sort(key=lambda pair: task.size(pair[1]))
    size = rows.shape[1]
    dealt = [
        ExampleBatch(*map(list, zip(*made[place : place + size], strict=True))) for place in range(0, len(made), size)
    ]
    return [dealt[place] for place in generator(seed, "window", epoch, first).permutation(len(dealt))]

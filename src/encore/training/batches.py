"""The batches of a training: which examples each step reads, and the arrays of this process's share of them.

Both are functions of only the seed and the step. So batches may be made ahead, by any number of processes, and no
training waits for a text that is read, masked and padded by a single core.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from encore.models.memory import MicroBatch, PartSize
from encore.storage.processes import in_order
from encore.training.distributed import ALONE, ProcessGroup
from encore.training.randomness import generator, number
from encore.training.task import Arrays, Task

WINDOW = 16  # batches that are sorted by length together: enough to save padding, few enough to stay random
AHEAD = 2  # windows that each worker has in hand
READY = 4  # batches that a thread has ready
T = TypeVar("T")


class Window(NamedTuple):
    """Consecutive batches of an epoch: rows of one permutation of all examples, before they are ordered by size.

    ``rows``: the numbers of their examples, int64 [W, B]. ``first``: the number of the first batch in its epoch.
    ``step``: the step that reads it. ``skip``: batches that an earlier process has trained on.
    """

    epoch: int
    first: int
    step: int
    rows: np.ndarray
    skip: int = 0


class Draw(NamedTuple):
    """The examples of a step, in the order of their lengths.

    ``indices``: their numbers in the task, int64 [B]; ``sizes``: tokens of the longest text of each, [B].
    """

    step: int
    epoch: int
    indices: np.ndarray
    sizes: np.ndarray


class BatchPart(NamedTuple):
    """Examples of a batch that go through the models at once.

    ``arrays``: what ``Task.collate`` made of them; ``examples``: how many they are; ``chance``: of their dropout.
    """

    arrays: Arrays
    examples: int
    chance: int


class Batch(NamedTuple):
    """A step's batch: this process's share of it in parts of at most ``size``.

    ``sizes``: tokens of the examples of the share, [n].
    """

    draw: Draw
    parts: list[BatchPart]
    size: PartSize
    sizes: np.ndarray


@dataclass(frozen=True)
class BatchMaker:
    """Makes the batches of a task, of ``batch`` examples each, for one of the processes that train together."""

    task: Task
    batch: int
    seed: int
    group: ProcessGroup = ALONE
    train_on: np.ndarray | None = None  # the numbers of the examples to train on, ascending; None for all

    def batches(self, start: int, micro_batch: MicroBatch, workers: int = 0) -> Generator[Batch, None, None]:
        """The endless sequence of batches from that of step ``start`` on, epoch after epoch.

        Args:
            micro_batch: the size of their parts; of batches that are made ahead it may be an earlier one.
            workers: processes that make them ahead; without any, each is made when it is needed.
        """
        if workers == 0:
            return (self.make(draw, micro_batch.size) for draw in self.draws(start))
        windows = ((window, micro_batch.size) for window in self.windows(start))
        return (batch for batches in in_order(self._of_window, windows, workers, AHEAD) for batch in batches)

    def draws(self, start: int = 0) -> Iterator[Draw]:
        """The examples that each step reads, from step ``start`` on, without end."""
        for window in self.windows(start):
            yield from self.deal(window)

    def windows(self, start: int) -> Iterator[Window]:
        """Runs of batches; the last batch of an epoch, filled up with examples of the first ones, stays alone.

        An epoch's permutation is of all examples, wherever they lie. It and their numbers are held, 16 bytes an
        example, and 24 while they are drawn: 212 MB of 8.84 million.
        """
        indices = np.arange(len(self.task)) if self.train_on is None else self.train_on
        per_epoch = -(-len(indices) // min(self.batch, len(indices)))
        epoch, skip = divmod(start, per_epoch)
        while True:
            rows = indices[self.task.order(len(indices), self.batch, self.seed, epoch)]
            for first in (*range(0, per_epoch - 1, WINDOW), per_epoch - 1):
                last = first + 1 if first == per_epoch - 1 else min(first + WINDOW, per_epoch - 1)
                if skip < last:
                    yield Window(epoch, first, epoch * per_epoch + first, rows[first:last], max(skip - first, 0))
            epoch, skip = epoch + 1, 0

    def deal(self, window: Window) -> list[Draw]:
        """The draws of a window's steps: its examples in the order of their sizes, cut into batches, these shuffled.

        Every process deals alike, so that it needs to make no example but its own.
        """
        indices, shape = window.rows.ravel(), window.rows.shape
        sizes = self.task.sizes(indices, partial(self.chance, window.epoch))
        order = by_size(self.task, sizes, shape[1]).reshape(shape)
        batches = list(zip(indices[order], sizes[order], strict=True))
        shuffled = generator(self.seed, "window", window.epoch, window.first).permutation(len(batches))
        draws = [Draw(step, window.epoch, *batches[place]) for step, place in enumerate(shuffled, window.step)]
        return draws[window.skip :]

    def chance(self, epoch: int, index: int) -> np.random.Generator:
        """All chance of an example in an epoch but its dropout."""
        return generator(self.seed, "example", epoch, int(index))

    def examples(self, draw: Draw, places: range) -> list[Any]:
        """The examples at those places of a batch."""
        indices = draw.indices[places].tolist()
        return [self.task.example(index, self.chance(draw.epoch, index)) for index in indices]

    def make(self, draw: Draw, size: PartSize) -> Batch:
        """The arrays of this process's share of a batch."""
        share = self.group.share(len(draw.indices))
        examples = self.examples(draw, share)
        sizes = self.task.tokens(examples, draw.sizes[share])
        parts = split_batch(self.task, examples, sizes, size, self.group, self.seed, "step", draw.step)
        return Batch(draw, parts, size, sizes)

    def _of_window(self, work: tuple[Window, PartSize]) -> list[Batch]:
        window, size = work
        return [self.make(draw, size) for draw in self.deal(window)]


def by_size(task: Task, sizes: np.ndarray, batch: int) -> np.ndarray:
    """The order of examples from small to large, int64 [n]: of all, so that those of like size share a batch.

    Where a task contrasts them it is that of each batch alone: negatives of a batch's own size would be other ones than
    those that chance gives, as the papers' trainers draw them.

    Args:
        sizes: of the examples as they were drawn, [n].
        batch: how many of them are a batch.
    """
    batches = np.arange(len(sizes)) // batch if task.has_contrast else np.zeros(len(sizes))
    return np.lexsort((sizes, batches))


def split_batch(
    task: Task,
    examples: Sequence[Any],
    sizes: np.ndarray,
    most: PartSize,
    group: ProcessGroup,
    seed: int,
    *key: str | int,
) -> list[BatchPart]:
    """A process's share of a batch, in parts.

    Dropout is drawn from the seed, the key, and where in the batch a part begins.

    Args:
        examples: those of the share.
        sizes: tokens of each, [n].
        most: what a part holds at most.
    """
    found = []
    for chosen in most.split(sizes):
        whole = group.size == 1 and len(chosen) == len(examples)
        place = () if whole else ("part", group.rank + group.size * chosen[0])
        arrays = task.collate([examples[row] for row in chosen])
        found.append(BatchPart(arrays, len(chosen), number(seed, *key, *place)))
    return found


def prefetched(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """The same items in the same order, up to ``READY`` of them made by a thread before they are asked for.

    An error of the generator is raised where its item would have come. Closing the reader closes the generator and
    waits for the thread: a process that ends while a thread of it is inside of torch is aborted.
    """
    with ThreadPoolExecutor(1) as thread:
        ahead = deque(thread.submit(next, items, None) for _ in range(READY))
        try:
            while (item := ahead.popleft().result()) is not None:
                ahead.append(thread.submit(next, items, None))
                yield item
        finally:
            for each in ahead:
                each.cancel()
            thread.submit(items.close).result()  # in the thread, with which the processes that it has forked end


def pinned(batches: Iterable[Batch]) -> Generator[Batch, None, None]:
    """The same batches in memory that a GPU copies from while both it and this process continue to work."""
    for batch in batches:
        parts = []
        for part in batch.parts:
            arrays = {name: torch.from_numpy(array).pin_memory().numpy() for name, array in part.arrays.items()}
            parts.append(part._replace(arrays=arrays))
        yield batch._replace(parts=parts)

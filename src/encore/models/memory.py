"""The number of examples that go through a model at once, in training or not, and fewer after memory has run out."""

import gc
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
import torch

from encore.errors import EncoreError
from encore.storage.machine import is_out_of_memory

T = TypeVar("T")


class PartSize(NamedTuple):
    """The most that goes through a model at once.

    ``examples``: how many; ``tokens``: as many for each as the largest of them has, once memory has run out.
    """

    examples: int
    tokens: int | None = None

    def split(self, sizes: np.ndarray) -> list[range]:
        """Consecutive examples that go together, by their numbers; one that is too large goes alone.

        Args:
            sizes: tokens of each example, [n].
        """
        parts, first, longest, count = [], 0, 0, 0
        for count, size in enumerate(sizes.tolist(), 1):
            longest = max(longest, size)
            if count - 1 > first and not self._holds(count - first, longest):
                parts.append(range(first, count - 1))
                first, longest = count - 1, size
        return [*parts, range(first, count)] if count else []

    def _holds(self, examples: int, longest: int) -> bool:
        return examples <= self.examples and (self.tokens is None or padded(examples, longest) <= self.tokens)


def padded(examples: int, longest: int) -> int:
    """Tokens of examples that are padded to the longest of them; an example of unknown length counts as one."""
    return examples * max(1, int(longest))


class MicroBatch:
    """The size of parts, smaller whenever memory runs out; the effective batch, and so a gradient, stays the same.

    ``largest`` gives the largest of a number over the processes that work together, and run out of memory together.
    """

    def __init__(self, size: PartSize, largest: Callable[[int], int] = int, says: bool = True) -> None:
        self.size = size
        self.largest = largest
        self.says = says

    def fit(self, work: Callable[[PartSize], T], sizes: np.ndarray) -> T:
        """Do the work with examples in parts of ``size``; where memory runs out, do it again in smaller ones.

        What runs out is tokens: examples that are shorter still go together in as many as before.

        Args:
            sizes: tokens of each example, [n].
        """
        while True:
            try:
                return work(self.size)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            # What the error holds is freed before the work is done again.
            self._halve(sizes)

    def each(self, work: Callable[[range], T], sizes: np.ndarray) -> list[T]:
        """The results of ``work`` for each part, given the numbers of its examples; ``fit`` says the rest."""
        return self.fit(lambda size: [work(part) for part in size.split(sizes)], sizes)

    def _halve(self, sizes: np.ndarray) -> None:
        parts = [part for part in self.size.split(sizes) if len(part) > 1]
        tokens = self.largest(max((padded(len(part), sizes[part].max()) for part in parts), default=0))
        if tokens == 0:
            raise EncoreError(
                "out of memory with one example at a time; lower `length`, or take a smaller model or a larger GPU"
            )
        self.size = PartSize(self.size.examples, (tokens + 1) // 2)
        if self.says:
            print(f"out of memory; continuing with {self.size.tokens} tokens at a time, the same batch", flush=True)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

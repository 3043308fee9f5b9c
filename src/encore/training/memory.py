"""How many examples go through the models at once, and what happens when these are too many."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TypeVar

import torch

from encore.errors import EncoreError

T = TypeVar("T")
NO_MEMORY = ("CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED")  # of libraries that allocate for themselves


def is_out_of_memory(error: RuntimeError) -> bool:
    """Whether torch, or a library that it calls, could not have the memory that it needed."""
    return isinstance(error, torch.OutOfMemoryError) or any(name in str(error) for name in NO_MEMORY)


class MicroBatch:
    """A size that is halved whenever memory runs out; the effective batch, and so the gradient, stays the same."""

    def __init__(self, size: int, says: bool = True) -> None:
        self.size = size
        self.says = says

    def fit(self, work: Callable[[int], T]) -> T:
        """Do the work with examples in parts of ``size``; where memory runs out, do it again in smaller ones.

        Raises:
            EncoreError: one example alone is too large.
        """
        while True:
            try:
                return work(self.size)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            # What the error holds is freed before the work is done again.
            self._halve()

    def _halve(self) -> None:
        if self.size == 1:
            raise EncoreError(
                "out of memory with one example at a time; lower `length`, or take a smaller model or a larger GPU"
            )
        self.size = -(-self.size // 2)
        if self.says:
            print(f"out of memory; going on with {self.size} examples at a time, the same batch", flush=True)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

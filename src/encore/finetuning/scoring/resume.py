"""Scoring many pairs in parts, so that a scoring that was killed resumes where it was.

A scorer's parts (blocks of passages, batches of pairs) are a function of the pairs and of the device. Those that are
done are skipped and the others are scored as they would have been, so on the same device the bytes are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encore.storage.files import digest
from encore.training import checkpoint

PASSAGES = 16384  # of a block; a constant, since blocks decide which texts share a batch, and so the rounding
Report = Callable[[int], None]  # called with the number of pairs that are scored


def no_report(done: int) -> None:
    """Report nothing."""


class ScoreState:
    """A folder of the scores that are done so far; without a folder nothing is kept."""

    def __init__(self, folder: Path | None = None, spec: Any = None, seconds: float = 120.0) -> None:
        """``spec`` is what is scored, and ``seconds`` lie between two writings; the caller removes the folder."""
        self.folder, self.spec, self.due = folder, spec, checkpoint.Due(seconds)
        self.run = ""

    def resumed(self, queries: np.ndarray, passages: np.ndarray) -> tuple[np.ndarray, Iterator[slice]]:
        """The scores of these pairs, float32 [n], and slices of the pairs that are still to be scored into them.

        The scores are written, if it is time to, whenever the next slice is taken.

        Raises:
            EncoreError: what lies in the folder is of other pairs.
        """
        scores, done = self.load(queries, passages)

        def remaining() -> Iterator[slice]:
            for part in passage_blocks(passages):
                if part.start >= done:
                    yield part
                    self.save_if_due(scores, part.stop)

        return scores, remaining()

    def load(self, queries: np.ndarray, passages: np.ndarray) -> tuple[np.ndarray, int]:
        """The scores of these pairs, float32 [n] and NaN where they are not known, and how many of the pairs are done.

        Raises:
            EncoreError: what lies in the folder is of other pairs.
        """
        fresh = np.full(len(queries), np.nan, dtype=np.float32)
        if self.folder is None:
            return fresh, 0
        pairs = hashlib.sha256(np.stack([queries, passages]).astype("<i8").tobytes()).hexdigest()
        self.run = digest([self.spec, pairs])
        saved = checkpoint.load_checkpoint(self.folder, self.run)
        if saved is None:
            return fresh, 0
        print(f"going on after {saved['step']:,} of {len(queries):,} pairs", flush=True)
        return saved["scores"].numpy().copy(), int(saved["step"])

    def save_if_due(self, scores: np.ndarray, done: int) -> None:
        """Say that so many pairs are done; the scores are written if it is time to."""
        if self.folder is not None and self.due(done):
            checkpoint.save_checkpoint(self.folder, self.run, done, {"scores": torch.from_numpy(scores)})


def passage_blocks(passages: np.ndarray, most: int = PASSAGES) -> Iterator[slice]:
    """Slices of the pairs, in their order, each with at most ``most`` different passages.

    What is computed once a passage then fits in memory.

    Args:
        passages: int64 [n], the passage of each pair.
    """
    seen: set[int] = set()
    first = 0
    for place, passage in enumerate(passages.tolist()):
        if passage not in seen and len(seen) == most:
            yield slice(first, place)
            seen, first = set(), place
        seen.add(passage)
    if first < len(passages):
        yield slice(first, len(passages))

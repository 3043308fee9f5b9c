"""Scores that are kept while others are computed, so that a scoring that was killed goes on where it was.

A scorer's parts (blocks of passages, batches of pairs) are a function of the pairs alone. Those that are done are
skipped and the others are scored as they would have been, so the bytes are the same.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encore.storage.files import digest
from encore.training import checkpoint


class Kept:
    """A folder of scores that are done so far; without a folder nothing is kept."""

    def __init__(self, folder: Path | None = None, spec: Any = None, seconds: float = 120.0) -> None:
        """``spec`` is what is scored, and ``seconds`` lie between two writings; the caller removes the folder."""
        self.folder, self.spec, self.due = folder, spec, checkpoint.Due(seconds)
        self.run = ""

    def begun(self, queries: np.ndarray, passages: np.ndarray) -> tuple[np.ndarray, int]:
        """The scores of these pairs, float32 [n], as far as they are known, and how many parts of them are done.

        Raises:
            EncoreError: what lies in the folder is of other pairs.
        """
        fresh = np.empty(len(queries), dtype=np.float32)
        if self.folder is None:
            return fresh, 0
        pairs = hashlib.sha256(np.stack([queries, passages]).astype("<i8").tobytes()).hexdigest()
        self.run = digest([self.spec, pairs])
        saved = checkpoint.load(self.folder, self.run)
        if saved is None:
            return fresh, 0
        print(f"going on after part {saved['step']}", flush=True)
        return saved["scores"].numpy().copy(), int(saved["step"])

    def done(self, scores: np.ndarray, parts: int) -> None:
        """Say that so many parts are done; the scores are written if it is time to."""
        if self.folder is not None and self.due(parts):
            checkpoint.save(self.folder, self.run, parts, {"scores": torch.from_numpy(scores)})

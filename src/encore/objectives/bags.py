"""The bag of a text: its distinct pieces, what bag-of-words objectives ask a representation to name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def bags(sequences: Sequence[np.ndarray], special: Sequence[int]) -> np.ndarray:
    """[B, K] int64: the distinct pieces of each text, special tokens left out, in ascending order, padded with -1."""
    found = [np.setdiff1d(ids, special) for ids in sequences]
    bag = np.full((len(found), max(map(len, found), default=0)), -1, dtype=np.int64)
    for row, pieces in enumerate(found):
        bag[row, : len(pieces)] = pieces
    return bag

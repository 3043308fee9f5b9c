"""The bag of a text: its distinct pieces, what bag-of-words objectives ask a representation to name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

BITS = 16  # that a piece fits into, as tokens are stored


def bags(sequences: Sequence[np.ndarray], special: Sequence[int]) -> np.ndarray:
    """[B, K] int64: the distinct pieces of each text, special tokens left out, in ascending order, padded with -1."""
    texts = np.repeat(np.arange(len(sequences)), [len(ids) for ids in sequences])
    pieces = np.concatenate([*sequences, np.array([], dtype=np.int64)]).astype(np.int64)
    keys = np.sort((texts << BITS) | pieces)  # all texts at once
    keys = keys[np.diff(keys, prepend=-1) > 0]
    keys = keys[~np.isin(keys & ((1 << BITS) - 1), special)]
    sizes = np.bincount(keys >> BITS, minlength=len(sequences))
    bag = np.full((len(sequences), sizes.max(initial=0)), -1, dtype=np.int64)
    bag[np.arange(bag.shape[1]) < sizes[:, None]] = keys & ((1 << BITS) - 1)
    return bag

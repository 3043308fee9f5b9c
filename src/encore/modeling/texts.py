"""From id sequences to the rectangular arrays that an encoder reads, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Special(Protocol):
    """Where the ids of [CLS], [SEP] and padding are known: a ``Shape`` or ``SpecialTokens``."""

    @property
    def cls(self) -> int: ...
    @property
    def sep(self) -> int: ...
    @property
    def pad(self) -> int: ...


def wrap(sequence: np.ndarray, length: int, special: Special) -> np.ndarray:
    """[CLS] sequence [SEP], the sequence cut from the right so that all is at most ``length`` tokens; int64."""
    kept = sequence[: max(length - 2, 0)]
    wrapped = np.empty(len(kept) + 2, dtype=np.int64)
    wrapped[0], wrapped[-1] = special.cls, special.sep
    wrapped[1:-1] = kept
    return wrapped


def pad(sequences: Sequence[np.ndarray], length: int, special: Special) -> tuple[np.ndarray, np.ndarray]:
    """Wrap sequences without special tokens and pad them to the longest: ids int64 [B, L], mask bool [B, L]."""
    return stack([wrap(sequence, length, special) for sequence in sequences], special.pad)


def stack(sequences: Sequence[np.ndarray], padding: int) -> tuple[np.ndarray, np.ndarray]:
    """Pad sequences as they are to the longest: ids int64 [B, L], mask bool [B, L]."""
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]
    ids = np.full(mask.shape, padding, dtype=np.int64)
    ids[mask] = np.concatenate(sequences) if len(sequences) else 0
    return ids, mask

"""Lengths of texts: a sample of a finished collection, or assumed ones."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

SAMPLE = 1024  # texts that represent all
SPREAD = {"passages": 0.45, "queries": 0.4, "sections": 0.9}  # assumed deviation of the logarithm of a length


@dataclass(frozen=True)
class TextLengths:
    """How many texts there are, and the lengths of an even sample of them in tokens, special ones not included."""

    count: float
    lengths: np.ndarray  # float64 [n], ascending

    @property
    def mean(self) -> float:
        """Mean tokens of a text of the sample, special ones not included."""
        return float(self.lengths.mean())

    @property
    def tokens(self) -> float:
        """Tokens of all texts."""
        return self.count * self.mean

    def read(self, limit: int, special: int = 2) -> np.ndarray:
        """What a model reads of each text of the sample: cut to ``limit`` tokens, special ones included."""
        return np.minimum(self.lengths + special, limit)


def assumed(count: float, mean: float, kind: str) -> TextLengths:
    """Texts whose lengths are log-normal around a mean."""
    spread = SPREAD[kind]
    places = [NormalDist().inv_cdf((number + 0.5) / SAMPLE) for number in range(SAMPLE)]
    shape = np.exp(spread * np.array(places))
    return TextLengths(count, np.maximum(shape * (mean / shape.mean()), 1.0))


def sampled(lengths: np.ndarray) -> TextLengths:
    """Texts whose lengths are known; an even sample of them is kept."""
    if not len(lengths):
        return TextLengths(0, np.ones(1))
    ordered = np.sort(lengths).astype(np.float64)
    places = ((np.arange(SAMPLE) + 0.5) / SAMPLE * len(ordered)).astype(np.int64)
    kept = ordered if len(ordered) <= SAMPLE else ordered[places]
    return TextLengths(len(ordered), np.maximum(kept, 1.0))


def packed(sections: TextLengths, length: int, filled: float = 1.0, short: float = 0.0) -> TextLengths:
    """The chunks that sections, or articles, are packed into (``objectives/parts/chunks.py``).

    Full ones, those that are packed to a shorter length, and what is left over.

    Args:
        filled: of a full chunk's room, the share that it fills on average; above 1, the rest is cut off.
        short: the share of chunks that are packed to a shorter length, any alike.
    """
    room = max(length - 2, 1)
    full = np.floor(sections.lengths / (filled * room))
    left = sections.lengths - full * filled * room
    parts = full.sum() / (1 - short / 2)
    shorter = np.linspace(1, filled * room, round(parts * short))
    chunks = np.concatenate([np.full(round(parts * (1 - short)), filled * room), shorter, left[left >= 1]])
    chunks = np.minimum(chunks, room)
    return TextLengths(sections.count * len(chunks) / len(sections.lengths), sampled(chunks).lengths)


FITTING = 0.95  # of its room is filled by a chunk that ends before the first sentence that does not fit

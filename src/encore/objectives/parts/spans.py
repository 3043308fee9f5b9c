"""Spans of a text at several granularities, as COSTA contrasts them with the whole text.

Positions count pieces of the text without special tokens; a span is [start, end).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

Granularity = Literal["word", "phrase", "sentence", "paragraph"]
BOUNDS: dict[str, tuple[int, int]] = {"phrase": (4, 16), "sentence": (16, 64), "paragraph": (64, 128)}  # in pieces
ALPHA, BETA = 4.0, 2.0  # of the beta distribution: long spans are likelier than short ones


def beta_spans(n: int, shortest: int, longest: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Spans with lengths between ``shortest`` and ``longest`` (COSTA, Eq. 1 to 3; Giorgi et al. 2021).

    ``length = floor(p * (longest - shortest) + shortest)`` with ``p ~ Beta(4, 2)``;
    ``start ~ Uniform{0, ..., n - length}``. ``longest`` is lowered to ``n``; a text shorter than ``shortest`` has none.

    Returns:
        [count, 2] int64, or [0, 2]; spans may overlap.
    """
    if n < shortest:
        return np.zeros((0, 2), dtype=np.int64)
    lengths = beta_lengths(shortest, min(longest, n), count, rng)
    starts = rng.integers(0, n - lengths, endpoint=True)
    return np.stack([starts, starts + lengths], axis=1)


def beta_lengths(shortest: int, longest: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Lengths of spans, [count] int64; only a share of 1, which has no probability, would give ``longest``."""
    return np.floor(rng.beta(ALPHA, BETA, size=count) * (longest - shortest) + shortest).astype(np.int64)


def word_spans(starts: np.ndarray, n: int, usable: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Different words of a text, each with all its pieces; fewer than ``count`` where the text has fewer.

    Args:
        starts: [words] first position of each word.
        usable: [words] bool, false for stop-words and punctuation.

    Returns:
        [at most count, 2] int64.
    """
    words = np.stack([starts, np.append(starts[1:], n)], axis=1)[usable].astype(np.int64)
    return words[rng.permutation(len(words))[:count]]

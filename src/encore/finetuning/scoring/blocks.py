"""Pairs in blocks of few enough passages, so that what is computed once a passage fits in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

PASSAGES = 16384  # of a block; a constant, since blocks decide which texts share a batch, and so the rounding


def blocks(passages: np.ndarray, most: int = PASSAGES) -> Iterator[slice]:
    """Cut pairs, in their order, wherever one more would bring more than ``most`` different passages together."""
    seen: set[int] = set()
    first = 0
    for place, passage in enumerate(passages.tolist()):
        if passage not in seen and len(seen) == most:
            yield slice(first, place)
            seen, first = set(), place
        seen.add(passage)
    if first < len(passages):
        yield slice(first, len(passages))

"""The losses again, from their formulas, in float64 and with NumPy only: slow, plain, independent of the library."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray


def info_nce(
    queries: Array, passages: Array, positive: Array, temperature: float, ignored: Array | None = None
) -> float:
    total = 0.0
    for i, query in enumerate(queries):
        right = np.exp(query @ passages[positive[i]] / temperature)
        others = sum(
            np.exp(query @ passage / temperature)
            for j, passage in enumerate(passages)
            if j != positive[i] and not (ignored is not None and ignored[i, j])
        )
        total -= np.log(right / (right + others))
    return total / len(queries)


def sup_con(anchors: Array, candidates: Array, positive: Array, allowed: Array, temperature: float) -> float:
    per_anchor = []
    for i, anchor in enumerate(anchors):
        weights = [np.exp(anchor @ candidate / temperature) for candidate in candidates]
        below = sum(weight for j, weight in enumerate(weights) if allowed[i, j])
        own = [np.log(weights[j] / below) for j in range(len(candidates)) if positive[i, j]]
        if own:
            per_anchor.append(-sum(own) / len(own))
    return sum(per_anchor) / len(per_anchor)


def masked_lm(logits: Array, targets: Array, count: int | None = None) -> float:
    total = sum(-row[target] + np.log(np.exp(row).sum()) for row, target in zip(logits, targets, strict=True))
    return total / (len(targets) if count is None else count)


def soft_cross_entropy(logits: Array, targets: Array) -> float:
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return -(targets * np.log(shares)).sum() / len(logits)


def gradient(function: Callable[[Array], float], point: Array, step: float = 1e-5) -> Array:
    """Central differences of a scalar function."""
    result = np.zeros_like(point)
    for place in np.ndindex(point.shape):
        up, down = point.copy(), point.copy()
        up[place] += step
        down[place] -= step
        result[place] = (function(up) - function(down)) / (2 * step)
    return result

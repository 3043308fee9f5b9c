"""Crossover of two curves: the last place at which one falls to the other, and its bootstrap interval over seeds.

Curves are straight between their points over the logarithm of x. A crossing is ``-inf`` where the first is nowhere
ahead on their common range, ``inf`` where it is ahead at its end, and ``nan`` where they have no common range.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DRAWS = 2000
LEVEL = 0.95
ENOUGH_SEEDS = 5


@dataclass(frozen=True)
class Crossing:
    """The crossing ``at`` of the mean curves, in the unit of x, and its 95 % interval (None below five seeds)."""

    at: float
    low: float | None = None
    high: float | None = None


def crossing(over: Floats, own: Floats, over_other: Floats, other: Floats) -> float:
    """Where the curve ``own`` over ``over`` last falls to ``other``; all [points], x ascending and positive."""
    x, theirs = np.log(over), np.log(over_other)
    first, last = max(x[0], theirs[0]), min(x[-1], theirs[-1])
    if first >= last:
        return float("nan")
    inner = np.concatenate([x, theirs])
    grid = np.unique(np.concatenate([[first, last], inner[(inner > first) & (inner < last)]]))
    ahead = np.interp(grid, x, own) - np.interp(grid, theirs, other)
    if ahead[-1] > 0:
        return float("inf")
    places = np.flatnonzero(ahead > 0)
    if not len(places):
        return float("-inf")
    place = places[-1]
    share = ahead[place] / (ahead[place] - ahead[place + 1])
    return float(np.exp(grid[place] + share * (grid[place + 1] - grid[place])))


def over_seeds(over: Floats, own: Floats, over_other: Floats, other: Floats) -> Crossing:
    """The crossing of the mean curves, with a 95 % percentile interval of the bootstrap over seeds, which both share.

    2,000 draws of a fixed generator (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3); no
    interval with fewer than five seeds.

    Args:
        over, over_other: [points], ascending and positive: queries, operations or passages.
        own, other: [seeds, points] in the measure's unit, rows of the same seeds in the same order.
    """
    at = crossing(over, own.mean(0), over_other, other.mean(0))
    if len(own) < ENOUGH_SEEDS or np.isnan(at):
        return Crossing(at)
    chance = np.random.Generator(np.random.PCG64(0))
    draws = chance.integers(len(own), size=(DRAWS, len(own)))
    found = [crossing(over, own[draw].mean(0), over_other, other[draw].mean(0)) for draw in draws]
    ends = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="inverted_cdf")
    return Crossing(at, float(ends[0]), float(ends[1]))

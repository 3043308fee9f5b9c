"""Whether two ways to train are as good as each other: two one-sided tests (Schuirmann 1987) on paired seeds.

That no difference was found shows nothing; that the whole interval of the difference lies within a margin, which was
fixed before, does. Both sides answer the same queries, so that only the chance of training counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

LEVEL = 0.05  # of each of the two tests, so that the interval next to them is one of 90 %


@dataclass(frozen=True)
class Difference:
    """The mean of paired differences with its standard error, what lies in its interval, and whether that is nothing.

    ``p`` is the larger of the two one-sided values: the chance of such a mean if the truth were at the nearer margin.
    """

    mean: float
    error: float
    low: float
    high: float
    p: float
    equivalent: bool


def compare(first: Sequence[float], second: Sequence[float], margin: float) -> Difference:
    """Second minus first, seed by seed.

    Args:
        first, second: a value for each seed, in one order.
        margin: in the unit of the values; a difference of less means nothing to us.

    Raises:
        ValueError: fewer than two seeds, or another number on one side.
    """
    if len(first) != len(second) or len(first) < 2:
        raise ValueError(f"{len(first)} and {len(second)} seeds cannot be compared; give as many of both, at least 2")
    differences = np.array(second, dtype=np.float64) - np.array(first, dtype=np.float64)
    freedom = len(differences) - 1
    mean, error = float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))
    reach = float(stdtrit(freedom, 1 - LEVEL)) * error
    p = _above(margin - abs(mean), error, freedom)
    return Difference(mean, error, mean - reach, mean + reach, p, p < LEVEL)


def _above(room: float, error: float, freedom: int) -> float:
    """The chance of a mean so far inside of the margin that it is the truth."""
    if error == 0:
        return 0.0 if room > 0 else 1.0
    return float(stdtr(freedom, -room / error))

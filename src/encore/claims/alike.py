"""Whether two settings order the same systems alike: Kendall's tau, and how often chance gives as much."""

from collections.abc import Sequence
from functools import cache
from itertools import combinations, permutations


def tau(first: Sequence[float], second: Sequence[float]) -> float:
    """Kendall's tau-a of two lists of values: agreeing minus disagreeing pairs, over all; a tie counts as neither."""
    pairs = list(combinations(range(len(first)), 2))
    return sum(_sign(first[i] - first[j]) * _sign(second[i] - second[j]) for i, j in pairs) / len(pairs)


def chance_of_tau(count: int, found: float) -> float:
    """How often two random orders of so many systems have a tau of at least ``found``."""
    taus = _taus(count)
    return sum(value >= found - 1e-9 for value in taus) / len(taus)


@cache
def _taus(count: int) -> list[float]:
    straight = list(range(count))
    return [tau(straight, order) for order in permutations(straight)]


def _sign(value: float) -> int:
    return int(value > 0) - int(value < 0)

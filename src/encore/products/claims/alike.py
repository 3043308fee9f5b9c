"""Agreement of two orders of systems: Kendall's tau and its exact null distribution (Kendall, Biometrika 30, 1938)."""

from collections.abc import Sequence
from functools import cache
from itertools import combinations, permutations


def tau(first: Sequence[float], second: Sequence[float]) -> float:
    """Kendall's tau-a: agreeing minus disagreeing pairs over all pairs; a tie counts as neither (Kendall 1938).

    Args:
        first, second: one value per system, in the same order of systems; at least two systems.

    Returns:
        A number from -1 (opposite orders) to 1 (equal orders).
    """
    pairs = list(combinations(range(len(first)), 2))
    return sum(_sign(first[i] - first[j]) * _sign(second[i] - second[j]) for i, j in pairs) / len(pairs)


def chance_of_tau(count: int, found: float) -> float:
    """The exact one-sided p value of a tau: how often a random order of ``count`` systems has at least ``found``.

    Counts all ``count!`` orders, as Kendall (1938) does for small samples; orders are without ties.
    """
    taus = _taus(count)
    return sum(value >= found - 1e-9 for value in taus) / len(taus)


@cache
def _taus(count: int) -> list[float]:
    straight = list(range(count))
    return [tau(straight, order) for order in permutations(straight)]


def _sign(value: float) -> int:
    return int(value > 0) - int(value < 0)

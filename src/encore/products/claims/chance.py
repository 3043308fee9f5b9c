"""The probability that a claim about an order holds by chance, if all its systems are equally good.

Under this null hypothesis systems have a uniformly random order. A checkpoint counts once: what it gains or loses by
luck shows on every test set and after every fine-tuning, so that comparisons of two checkpoints are one, whatever they
are measured on. Two fine-tunings of one checkpoint are compared as such. The probability of a set of
inequalities is then the number of linear extensions of their partial order over n! (Brightwell and Winkler, "Counting
linear extensions", Order 8, 1991), counted by dynamic programming over sets of systems.

Two orders of systems agree by Kendall's tau, with its exact null distribution (Biometrika 30, 1938).
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from itertools import combinations, permutations

from encore.products.claims.contrasts import Address, Contrast

LARGEST = 12  # systems whose orders are counted
ABOVE_NOTHING = 1e-6  # less than any tau above 0
Origin = Callable[[Address], tuple[Hashable, ...]]  # what makes a cell's number: pre-trained checkpoint, model, queries
Edges = set[tuple[Hashable, Hashable]]


def chance_of_all(contrasts: Sequence[Contrast], needed: int, origin: Origin) -> float | None:
    """The probability in [0, 1] that ``needed`` of the contrasts hold; None unless all are plain orders of few systems.

    None too where comparisons of two checkpoints are claimed to disagree, which no single order does. With fewer needed
    than there are, the contrasts are treated as independent fair coins: a binomial tail with p = 1/2.

    Args:
        contrasts: inequalities between two cells each.
        needed: how many of them must hold.
        origin: what makes a cell's number, from the pre-trained checkpoint on; two cells differ by the first of it
            that they do not share.
    """
    if not all(contrast.plain for contrast in contrasts):
        return None
    if needed < len(contrasts):
        count = len(contrasts)
        return sum(math.comb(count, held) for held in range(needed, count + 1)) / 2**count
    return _all_hold(_edges(contrasts, origin)) or None


def _edges(contrasts: Iterable[Contrast], origin: Origin) -> Edges:
    """Which checkpoint, or what of one, must be above which; the same of several columns is one."""
    found: Edges = set()
    for contrast in contrasts:
        higher, lower = (origin(address) for address, _ in contrast.terms)
        level = next((level for level, (a, b) in enumerate(zip(higher, lower, strict=False)) if a != b), len(higher))
        found.add((higher[: level + 1], lower[: level + 1]))
    return found


def _all_hold(edges: Edges) -> float | None:
    product = 1.0
    for part in _connected(edges):
        systems = sorted({system for edge in part for system in edge}, key=repr)
        if len(systems) > LARGEST:
            return None
        product *= _share(systems, part)
    return product


def _share(systems: list[Hashable], edges: Edges) -> float:
    """The share of all orders of the systems in which the first of each edge is above the second."""
    numbers = {system: number for number, system in enumerate(systems)}
    higher = [sum({1 << numbers[above] for above, below in edges if below == system}) for system in systems]
    ways = [1] + [0] * (2 ** len(systems) - 1)  # of each set of systems (a bit each), how many of its orders hold
    for placed in range(len(ways)):
        for last, above in enumerate(higher):
            if placed & 1 << last and above & placed == above:
                ways[placed] += ways[placed ^ 1 << last]
    return ways[-1] / math.factorial(len(systems))


def _connected(edges: Edges) -> list[Edges]:
    """Edges in groups that share no system."""
    groups: list[tuple[set[Hashable], Edges]] = []
    for edge in edges:
        systems, joined, apart = set(edge), {edge}, []
        for known, those in groups:
            if known & systems:
                systems |= known
                joined |= those
            else:
                apart.append((known, those))
        groups = [*apart, (systems, joined)]
    return [those for _, those in groups]


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

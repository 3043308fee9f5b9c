"""The probability that a claim about an order holds by chance, if all its systems are equally good.

Under this null hypothesis the systems of one run (a dataset and its queries) have a uniformly random order, independent
of other runs; columns that share a run count once, since the same ranking gives them all. The probability of a set of
inequalities is then the number of linear extensions of their partial order over n! (Brightwell and Winkler, "Counting
linear extensions", Order 8, 1991), counted by dynamic programming over sets of systems.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence

from encore.claims import alike
from encore.claims.contrasts import Address, Contrast

LARGEST = 12  # systems whose orders are counted
ABOVE_NOTHING = 1e-6  # less than any tau above 0
Ranking = Callable[[Address], Hashable]  # what makes a cell's number: one system's ranking of one run's queries
Edges = set[tuple[Hashable, Hashable]]


def chance_of_all(contrasts: Sequence[Contrast], needed: int, ranking: Ranking) -> float | None:
    """The probability in [0, 1] that ``needed`` of the contrasts hold; None unless all are plain orders of few systems.

    None too where columns of one run are claimed to disagree, which no single order does. With fewer needed than there
    are, the contrasts are treated as independent fair coins: a binomial tail with p = 1/2.

    Args:
        contrasts: inequalities between two cells each.
        needed: how many of them must hold.
        ranking: the identity of the ranking behind a cell, so that columns of one run count once.
    """
    if not all(contrast.plain for contrast in contrasts):
        return None
    if needed < len(contrasts):
        return _at_least(needed, len(contrasts))
    return _all_hold(_edges(contrasts, ranking)) or None


def of_no_winner(contrasts: Sequence[Contrast], ranking: Ranking) -> float | None:
    """The probability that a row is neither above another in every run nor below it in every run: 1 - 2 / 2^runs.

    None for a single run, where one of the two is always above.
    """
    runs = len(_edges(contrasts, ranking))
    return 1 - 2 / 2**runs if runs > 1 else None


def of_alike(systems: int, runs: int) -> float:
    """The probability that two random orders of so many systems have Kendall's tau above 0 in each of the runs."""
    return alike.chance_of_tau(systems, ABOVE_NOTHING) ** runs


def _edges(contrasts: Iterable[Contrast], ranking: Ranking) -> Edges:
    """Which ranking must be above which; the same of several columns is one."""
    found: Edges = set()
    for contrast in contrasts:
        (higher, _), (lower, _) = contrast.terms
        found.add((ranking(higher), ranking(lower)))
    return found


def _at_least(needed: int, count: int) -> float:
    return sum(math.comb(count, held) for held in range(needed, count + 1)) / 2**count


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

"""How often a claim about an order would hold if all its systems were equally good.

Systems of one run (a dataset and its queries) are taken to stand in a random order there, independently from run to
run; columns that share a run count once, since the same ranking gives them all.
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
    """The chance that ``needed`` of the contrasts hold; None where they are no mere orders, or too many systems.

    None too where columns of one run are claimed to disagree, which no single order does. With fewer needed than there
    are, each is taken to be one in two, independent of the others.
    """
    if not all(contrast.plain for contrast in contrasts):
        return None
    if needed < len(contrasts):
        return _at_least(needed, len(contrasts))
    return _all_hold(_edges(contrasts, ranking)) or None


def of_no_winner(contrasts: Sequence[Contrast], ranking: Ranking) -> float | None:
    """The chance that a row is neither above another in every run nor below it; None for one run, which has no say."""
    runs = len(_edges(contrasts, ranking))
    return 1 - 2 / 2**runs if runs > 1 else None


def of_alike(systems: int, runs: int) -> float:
    """The chance that two random orders of so many systems have a tau above 0, in each run."""
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
    """Of all orders of the systems, those in which each edge's first stands above its second."""
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

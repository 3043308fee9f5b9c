"""How often a claim about an order would hold if all its systems were equally good.

Systems of one run (a dataset and its queries) are taken to stand in a random order there, independently from run to
run; columns that share a run count once, since the same ranking gives them all.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import permutations

from encore.claims.contrasts import Address, Contrast

LARGEST = 8  # systems whose orders are all tried
Run = Callable[[Address], Hashable]
Edges = set[tuple[Hashable, Hashable]]


def rate(contrasts: Sequence[Contrast], needed: int, run: Run) -> float | None:
    """The chance that ``needed`` of the contrasts hold; None where they are no mere orders, or too many systems.

    None too where columns of one run are claimed to disagree, which no single order does. With fewer needed than there
    are, each is taken to be one in two, independent of the others.
    """
    if not all(contrast.plain for contrast in contrasts):
        return None
    if needed < len(contrasts):
        return _at_least(needed, len(contrasts))
    return _all_hold(_edges(contrasts, run)) or None


def _edges(contrasts: Iterable[Contrast], run: Run) -> Edges:
    """Which system must be above which, in which run; the same of several columns is one."""
    found: Edges = set()
    for contrast in contrasts:
        (higher, _), (lower, _) = contrast.terms
        found.add(((run(higher), higher[:3]), (run(lower), lower[:3])))
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
    wanted = [(numbers[higher], numbers[lower]) for higher, lower in edges]
    held = sum(
        all(order[higher] > order[lower] for higher, lower in wanted) for order in permutations(range(len(systems)))
    )
    return held / math.factorial(len(systems))


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

"""The probability that a claim about an order holds by chance, if all its systems are equally good.

Under this null hypothesis systems have a uniformly random order. A checkpoint counts once: what it gains or loses by
luck shows on every test set and after every fine-tuning, so that comparisons of two checkpoints are one, whatever they
are measured on. Two fine-tunings of one checkpoint are compared as such. The probability of a set of
inequalities is then the number of linear extensions of their partial order over n! (Brightwell and Winkler, "Counting
linear extensions", Order 8, 1991), counted by dynamic programming over sets of systems. Where fewer than all must hold,
for differences of differences and for many systems, the share of ``DRAWS`` random orders is taken instead.

Two orders of systems agree by Kendall's tau, with its exact null distribution (Biometrika 30, 1938).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from encore.products.claims.contrasts import Address, Contrast

LARGEST = 12  # systems whose orders are counted
DRAWS = 20_000  # of random orders, where they are not counted
ABOVE_NOTHING = 1e-6  # less than two taus differ by
Origin = Callable[[Address], tuple[Hashable, ...]]  # what makes a cell's number: checkpoint, model, queries, measure
Floats = NDArray[np.float64]
Edges = set[tuple[Hashable, Hashable]]


def of_mean(origin: Origin, address: Address, parts: Iterable[str]) -> tuple[Hashable, ...]:
    """What makes the number of a mean of columns: what makes theirs, each once."""
    each = [origin(address._replace(column=part)) for part in parts]
    return tuple(tuple(dict.fromkeys(level)) for level in zip(*each, strict=True))


class Required(NamedTuple):
    """A test of a claim: its kind, its comparisons, how many of them must hold, and for orders the tau to exceed."""

    kind: str
    contrasts: Sequence[Contrast]
    needed: int
    tau: float = 0.0


def chance_of(tests: Sequence[Required], origin: Origin) -> float | None:
    """The probability in [0, 1] that all tests hold if all systems are equally good; None where chance has no say.

    That is so of amounts, of ``no-winner``, of ``alike`` next to another test, and where comparisons of two checkpoints
    are claimed to disagree, which no single order does.

    Args:
        origin: what makes a cell's number, from the pre-trained checkpoint on; two cells differ by the first of it
            that they do not share.
    """
    if [test.kind for test in tests] == ["alike"]:
        rows = {address.row for contrast in tests[0].contrasts for address, _ in contrast.terms}
        return _chance_of_tau(len(rows), tests[0].tau)
    every = [contrast for test in tests for contrast in test.contrasts]
    if any(test.kind in ("alike", "no-winner") for test in tests) or not all(map(_without_amount, every)):
        return None
    all_needed = all(test.needed == len(test.contrasts) for test in tests)
    if all_needed and all(contrast.plain and _apart(contrast, origin) for contrast in every):
        counted = _all_hold(_edges(every, origin))
        if counted is not None:
            return counted or None
    return _simulated(tests, origin) or None


def _without_amount(contrast: Contrast) -> bool:
    balanced = not math.fsum(weight for _, weight in contrast.terms)
    return balanced and contrast.least == 0 and not (contrast.printed or contrast.equivalence)


def _simulated(tests: Sequence[Required], origin: Origin) -> float:
    """The share of random draws in which every test holds; what comparisons share is drawn once for all of them."""
    generator = np.random.default_rng(0)
    drawn: dict[Hashable, Floats] = {}
    hold = np.ones(DRAWS, dtype=bool)
    for test in tests:
        held = np.zeros(DRAWS, dtype=np.int64)
        for contrast in test.contrasts:
            difference = np.zeros(DRAWS)
            for system, weight in _apart(contrast, origin).items():
                if system not in drawn:
                    drawn[system] = generator.standard_normal(DRAWS)
                difference += weight * drawn[system]
            held += difference > 0
        hold &= held >= test.needed
    return float(hold.mean())


def _apart(contrast: Contrast, origin: Origin) -> dict[Hashable, float]:
    """The checkpoints, or what of one, by which the two sides of a contrast differ, with their weights."""
    origins = [(origin(address), weight) for address, weight in contrast.terms]
    left: defaultdict[Hashable, float] = defaultdict(float)
    for level in range(max(len(each) for each, _ in origins)):
        left = defaultdict(float)
        for each, weight in origins:
            left[each[: level + 1]] += weight
        if any(left.values()):
            break
    return {system: weight for system, weight in left.items() if weight}


def _edges(contrasts: Iterable[Contrast], origin: Origin) -> Edges:
    """Which checkpoint, or what of one, must be above which; the same of several columns is one."""
    found: Edges = set()
    for contrast in contrasts:
        sides = _apart(contrast, origin)
        found.add((max(sides, key=sides.__getitem__), min(sides, key=sides.__getitem__)))
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


def _chance_of_tau(count: int, bound: float) -> float:
    """How often a random order of ``count`` systems has a tau above a bound.

    Of all ``count!`` orders, as Kendall (1938) counts them for small samples: one more system makes 0, 1, 2, …
    disagreeing pairs equally often. Orders are without ties.
    """
    orders, pairs = [1], count * (count - 1) // 2  # orders by their number of disagreeing pairs
    for systems in range(2, count + 1):
        orders = [sum(orders[max(0, at - systems + 1) : at + 1]) for at in range(len(orders) + systems - 1)]
    return sum(each for at, each in enumerate(orders) if 1 - 2 * at / pairs > bound + ABOVE_NOTHING) / sum(orders)

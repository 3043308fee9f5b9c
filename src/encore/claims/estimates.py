"""The value of a contrast on runs, with the error of its estimate.

Cells of the same queries are subtracted query by query and seed by seed; sums over several sets of queries add up as
``significance.summed`` says. A cell without queries (a loss, a cost) has a value for each seed only, and a test over
seeds; with a single seed only the direction is known. Against a printed number too only seeds count: it was
taken on the same queries, and what has no chance in it (BM25) is compared as it is.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encore.claims.contrasts import Address, Contrast
from encore.claims.verdict import Estimate
from encore.errors import EncoreError
from encore.evaluation.significance import Difference, paired_t, summed
from encore.reporting.sources import CellValues

Floats = NDArray[np.float64]
Seeds = tuple[int, ...]


@dataclass(frozen=True)
class WeightedValues:
    """A term of the weighted sum that is a cell's value: the cell itself, or one of those that it is a mean of."""

    weight: float
    values: CellValues


Cells = Callable[[Address], Sequence[WeightedValues] | None]
Printed = Callable[[Address], float | None]


def estimate(contrast: Contrast, cells: Cells, printed: Printed) -> Estimate | None:
    """A contrast minus its bound, with its standard error; None where one of its cells has no value here.

    Over queries this is the cluster-robust difference of ``evaluation/significance.py``; over seeds alone it is
    Student's one-sample t-test of the seeds' weighted sums (Biometrika 6, 1908) with n - 1 degrees of freedom.

    Args:
        cells: what a cell of ours is made of; None for one that was not run.
        printed: what the paper prints in a cell, in the measure's own unit (0 to 1).

    Raises:
        EncoreError: two of its cells share no seed.
    """
    constant = -contrast.least
    for address, weight in contrast.printed:
        if (number := printed(address)) is None:
            return None
        constant += weight * number
    parts: list[WeightedValues] = []
    for address, weight in contrast.terms:
        found = cells(address)
        if found is None:
            return None
        parts += [WeightedValues(weight * part.weight, part.values) for part in found]
    seeds = _shared(parts)
    apart = _against_print(parts, seeds) if contrast.printed else _difference(parts, seeds)
    return Estimate(apart.shifted(constant), contrast.equivalence, len(seeds) or None)


def _against_print(parts: Sequence[WeightedValues], seeds: Seeds) -> Difference:
    """The difference to a printed number: only variance between seeds enters, since the queries are the same."""
    totals = _totals(parts, seeds)
    return _over_seeds(totals) if seeds else Difference(float(totals[0]), 0.0, 1, 0.0, 1)


def _difference(parts: Sequence[WeightedValues], seeds: Seeds) -> Difference:
    if all(part.values.queries is not None for part in parts):
        return summed([(apart, clusters) for apart, clusters in _by_queries(parts, seeds)])
    return _over_seeds(_totals(parts, seeds))


def _totals(parts: Sequence[WeightedValues], seeds: Seeds) -> Floats:
    """The weighted sum of the parts' means for each seed [seeds]."""
    totals = sum(part.weight * np.array([_mean(part.values, seed) for seed in seeds or (None,)]) for part in parts)
    return np.asarray(totals, dtype=np.float64)


def _over_seeds(totals: Floats) -> Difference:
    """The mean of ``totals`` [seeds] with its one-sample t-test; an infinite standard error for a single seed."""
    count = len(totals)
    if count < 2:
        return Difference(float(totals.mean()), math.inf, 1, 1.0, count)
    error = float(totals.std(ddof=1)) / math.sqrt(count)
    return Difference(float(totals.mean()), error, count - 1, paired_t(totals), count)


def _shared(parts: Sequence[WeightedValues]) -> Seeds:
    """The seeds that every part with chance in it has; none where no part has any.

    Raises:
        EncoreError: two parts share none.
    """
    seeded = [part.values.seeds for part in parts if part.values.seeds != [None]]
    shared = [seed for seed in (seeded[0] if seeded else []) if all(seed in seeds for seeds in seeded)]
    if seeded and not shared:
        raise EncoreError("rows of a claim share no seed, so they cannot be compared; give all the same `seeds`")
    return tuple(seed for seed in shared if seed is not None)


def _by_queries(parts: Sequence[WeightedValues], seeds: Seeds) -> Iterator[tuple[Floats, Sequence[str]]]:
    """Weighted sums [queries, seeds] of the parts that were judged on the same queries, and the queries' clusters."""
    sums: dict[tuple[str, ...], tuple[Floats, Sequence[str]]] = {}
    for part in parts:
        measured = part.values.queries
        assert measured is not None
        columns = [measured.scored[_place(part.values, seed)].values for seed in seeds or (None,)]
        own = part.weight * np.stack(columns, axis=1)
        key = tuple(measured.queries)
        before = sums[key][0] if key in sums else 0.0
        sums[key] = (before + own, measured.clusters)
    yield from sums.values()


def _place(values: CellValues, seed: int | None) -> int:
    return 0 if values.seeds == [None] else values.seeds.index(seed)


def _mean(values: CellValues, seed: int | None) -> float:
    return values.means[_place(values, seed)]

"""The value of a contrast on runs, with the error of its estimate.

Cells of the same queries are subtracted query by query and seed by seed; sums over several sets of queries add up as
``significance.summed`` says. A cell without queries (a loss, a cost) has a value for each seed only, and a test over
seeds; with a single seed only the direction is known.

A printed number is one training: next to S of ours, whose standard deviation is sd, it varies by sd * sqrt(1 + 1/S).
The same system's was taken on the same queries. Another system's differs on them too, by as much as a ``share`` of
both systems' own variance over queries (``papers/encore/spread.yaml``), since a paired difference is not known.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from encore.errors import EncoreError
from encore.evaluation.significance import Component, Difference, Floats, clustered, summed
from encore.products.claims.contrasts import Address, Contrast
from encore.products.claims.verdict import Estimate
from encore.products.tables.sources.base import CellValues

Seeds = tuple[int, ...]


@dataclass(frozen=True)
class WeightedValues:
    """A term of the weighted sum that is a cell's value: the cell itself, or one of those that it is a mean of."""

    weight: float
    values: CellValues


Cells = Callable[[Address], Sequence[WeightedValues] | None]
Printed = Callable[[Address], float | None]
Shares = Callable[[Address], float]


def unpaired(address: Address) -> float:
    """The share of two systems that answer queries without regard to each other."""
    return 1.0


def estimate(contrast: Contrast, cells: Cells, printed: Printed, shares: Shares = unpaired) -> Estimate | None:
    """A contrast minus its bound, with its standard error; None where one of its cells has no value here.

    Over queries this is the cluster-robust difference of ``evaluation/significance.py``; over seeds alone it is
    Student's one-sample t-test of the seeds' weighted sums (Biometrika 6, 1908) with n - 1 degrees of freedom.

    Args:
        cells: the parts of a cell of ours; None for one that was not run.
        printed: what the paper prints in a cell, in the measure's own unit (0 to 1).
        shares: of a copied cell, the variance of a paired difference over that of both systems, from 0 to 1.
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
    if contrast.printed:
        ours = {address for address, _ in contrast.terms}
        share = max((shares(address) for address, _ in contrast.printed if address not in ours), default=0.0)
        theirs, own = (math.fsum(weight**2 for _, weight in each) for each in (contrast.printed, contrast.terms))
        apart = _against_print(parts, seeds, theirs / own, share)
    elif all(part.values.queries is not None for part in parts):
        apart = summed(_by_queries(parts, seeds))
    else:
        totals = _totals(parts, seeds)
        count = len(totals)
        apart = Difference(float(totals.mean()), (Component(_variance(totals) / count, max(count - 1, 1)),), count)
    return Estimate(apart.shifted(constant), contrast.equivalence, len(seeds) or None, contrast.or_equal)


def _against_print(parts: Sequence[WeightedValues], seeds: Seeds, printed: float, share: float) -> Difference:
    """The difference to printed numbers.

    Args:
        printed: the variance of the printed numbers, each of one training, over that of ours under one seed.
        share: of the variance over queries, 0 where the printed numbers are of our own systems.
    """
    totals, trainings = _totals(parts, seeds), 1 / max(len(seeds), 1) + printed
    components = [Component(trainings * _variance(totals), max(len(seeds) - 1, 1))] if seeds else []
    if share and all(part.values.queries is not None for part in parts):
        queries = [_query_component(part) for part in parts]
        variance = math.fsum(part.weight**2 * one.variance for part, one in zip(parts, queries, strict=True))
        components.append(Component(share * variance * (1 + printed), min(one.freedom for one in queries)))
    return Difference(float(totals.mean()), tuple(components) or (Component(0.0, 1),), max(len(seeds), 1))


def _query_component(part: WeightedValues) -> Component:
    """The variance of a cell's mean over its queries' clusters."""
    measured = part.values.queries
    assert measured is not None
    values = np.stack([one.values for one in measured.scored], axis=1)
    return clustered(values.mean(axis=1, keepdims=True), measured.clusters).components[0]


def _variance(totals: Floats) -> float:
    return float(totals.var(ddof=1)) if len(totals) > 1 else math.inf


def _totals(parts: Sequence[WeightedValues], seeds: Seeds) -> Floats:
    """The weighted sum of the parts' means for each seed [seeds]."""
    means = ([part.values.under(seed) for seed in seeds or (None,)] for part in parts)
    totals = sum(part.weight * np.array(own) for part, own in zip(parts, means, strict=True))
    return np.asarray(totals, dtype=np.float64)


def _shared(parts: Sequence[WeightedValues]) -> Seeds:
    """The seeds that all parts with seeds share; empty if no part has seeds."""
    seeded = [part.values.seeds for part in parts if part.values.seeds != [None]]
    shared = [seed for seed in (seeded[0] if seeded else []) if all(seed in seeds for seeds in seeded)]
    if seeded and not shared:
        raise EncoreError("rows of a claim share no seed, so they cannot be compared; give all the same `seeds`")
    return tuple(seed for seed in shared if seed is not None)


def _by_queries(parts: Sequence[WeightedValues], seeds: Seeds) -> list[tuple[Floats, Sequence[str]]]:
    """Weighted sums [queries, seeds] of the parts that were judged on the same queries, and the queries' clusters."""
    sums: dict[tuple[str, ...], tuple[Floats, Sequence[str]]] = {}
    for part in parts:
        measured = part.values.queries
        assert measured is not None
        columns = [measured.scored[part.values.place(seed)].values for seed in seeds or (None,)]
        own = part.weight * np.stack(columns, axis=1)
        key = tuple(measured.queries)
        before = sums[key][0] if key in sums else 0.0
        sums[key] = (before + own, measured.clusters)
    return list(sums.values())

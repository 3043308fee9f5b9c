"""One cell's raw material: per-query values of all its seeds, and the paired differences of two of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.evaluation.scores import Scored
from encore.reporting.layout import Column, Row

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """A row under a column: the judged queries, and one ``Scored`` for each seed, all over the same queries."""

    seeds: list[int | None]
    scored: list[Scored]

    @property
    def queries(self) -> list[str]:
        return self.scored[0].queries

    @property
    def clusters(self) -> list[str]:
        return self.scored[0].clusters

    def means(self) -> list[float]:
        """The measure's mean over queries, for each seed; exactly rounded, so that machines cannot differ."""
        return [exact_mean(one.values) for one in self.scored]

    def tie_interval(self) -> tuple[float, float]:
        """Lowest and highest mean over all orders of tied scores, averaged over seeds."""
        low, high = ([exact_mean(getattr(one, end)) for one in self.scored] for end in ("low", "high"))
        return exact_mean(low), exact_mean(high)

    def answered(self) -> int:
        """Queries that the run of every seed has an answer to."""
        return int(np.logical_and.reduce([one.answered for one in self.scored]).sum())


def measure(row: Row, column: Column) -> Measured | None:
    """Read a cell's scores; None for a row that was not run, or a column that the collection cannot have.

    Raises:
        EncoreError: scores lack the measure, or two seeds were judged on different queries.
    """
    if not row.seeds or not column.collection:
        return None
    scored = [_one(Path(seed.scores), column) for seed in row.seeds]
    for seed, one in zip(row.seeds, scored, strict=True):
        _same_queries(one, scored[0], f"{seed.scores} and {row.seeds[0].scores}", column)
    return Measured([seed.seed for seed in row.seeds], scored)


def differences(ours: Measured, theirs: Measured, names: str, column: Column) -> Floats:
    """[queries, seeds]: ours minus theirs, for each seed that both have; a system without seeds is paired with each.

    Raises:
        EncoreError: the two share no seed, or were judged on different queries.
    """
    _same_queries(ours.scored[0], theirs.scored[0], names, column)
    pairs = [(a, b) for a, b in _pairs(ours.seeds, theirs.seeds)]
    if not pairs:
        raise EncoreError(f"{names} share no seed, so they cannot be compared; give both the same `seeds`")
    return np.stack([ours.scored[a].values - theirs.scored[b].values for a, b in pairs], axis=1)


def exact_mean(values: Sequence[float] | Floats) -> float:
    return math.fsum(values) / len(values)


def _pairs(ours: list[int | None], theirs: list[int | None]) -> list[tuple[int, int]]:
    if theirs == [None]:
        return [(place, 0) for place in range(len(ours))]
    if ours == [None]:
        return [(0, place) for place in range(len(theirs))]
    return [(place, theirs.index(seed)) for place, seed in enumerate(ours) if seed in theirs]


def _one(folder: Path, column: Column) -> Scored:
    found = _scores(folder)
    if (column.split, column.measure) not in found:
        known = ", ".join(f"{measure} on {split}" for split, measure in found)
        raise EncoreError(f"{folder} has no {column.measure} on {column.split}, only {known}; evaluate the run again")
    return found[column.split, column.measure]


@cache
def _scores(folder: Path) -> scores.Scores:
    return scores.read(folder)


def _same_queries(one: Scored, other: Scored, names: str, column: Column) -> None:
    if one.queries != other.queries:
        raise EncoreError(
            f"{names} were judged on different queries of {column.dataset} ({len(one.queries)} and "
            f"{len(other.queries)}, or in another order); evaluate both on the same collection"
        )

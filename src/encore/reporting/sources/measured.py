"""Measures of runs: per-query values of all seeds of a cell, and the paired differences of two cells."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.evaluation.scores import Scored
from encore.evaluation.significance import clustered
from encore.plan.tables.layout import Asked, Column
from encore.reporting.sources.base import Share, Values

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

    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the mean over queries and seeds; None where one cluster of queries is all there is."""
        if len(set(self.clusters)) < 2:
            return None
        return clustered(np.stack([one.values for one in self.scored], axis=1), self.clusters).interval()

    def answered(self) -> int:
        """Queries that the run of every seed has an answer to."""
        return int(np.logical_and.reduce([one.answered for one in self.scored]).sum())


class Measures(Share):
    """A measure on a split, read from the scores of the cell's runs."""

    def values(self, asked: Asked, parts: Mapping[str, Values | None]) -> Values | None:
        """None for a row that was not run, or a split that the collection cannot have."""
        found = measure(asked)
        return Values(found.seeds, found.means(), found.tie_interval(), found) if found else None

    def named(self, asked: Asked, column: Column) -> str:
        return asked.value


def measure(asked: Asked) -> Measured | None:
    """Read a cell's scores.

    Raises:
        EncoreError: scores lack the measure, or two seeds were judged on different queries.
    """
    if not asked.reads:
        return None
    scored = [_one(Path(read.folder), asked) for read in asked.reads]
    for read, one in zip(asked.reads, scored, strict=True):
        _same_queries(one, scored[0], f"{read.folder} and {asked.reads[0].folder}", asked)
    return Measured([read.seed for read in asked.reads], scored)


def differences(ours: Measured, theirs: Measured, names: str, asked: Asked) -> Floats:
    """[queries, seeds]: ours minus theirs, for each seed that both have; a system without seeds is paired with each.

    Raises:
        EncoreError: the two share no seed, or were judged on different queries.
    """
    _same_queries(ours.scored[0], theirs.scored[0], names, asked)
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


def _one(folder: Path, asked: Asked) -> Scored:
    found = _scores(folder)
    if (asked.split, asked.value) not in found:
        known = ", ".join(f"{measure} on {split}" for split, measure in found)
        raise EncoreError(f"{folder} has no {asked.value} on {asked.split}, only {known}; evaluate the run again")
    return found[asked.split, asked.value]


@cache
def _scores(folder: Path) -> scores.Scores:
    return scores.read(folder)


def _same_queries(one: Scored, other: Scored, names: str, asked: Asked) -> None:
    if one.queries != other.queries:
        raise EncoreError(
            f"{names} were judged on different queries of {asked.dataset} ({len(one.queries)} and "
            f"{len(other.queries)}, or in another order); evaluate both on the same collection"
        )

"""Measures of runs: per-query values of all seeds of a cell, and the paired differences of two cells."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.evaluation.scores import Floats, Scored
from encore.plan.tables.layout import Asked, Column
from encore.reporting.sources.base import CellScores, CellValues, ShareSource


class Measures(ShareSource):
    """A measure on a split, read from the scores of the cell's runs."""

    def values(self, asked: Asked, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """None for a row that was not run, or a split that the collection cannot have."""
        found = measure(asked)
        return CellValues(found.seeds, found.means(), found.tie_interval(), found) if found else None

    def named(self, asked: Asked, column: Column) -> str:
        return asked.value


def measure(asked: Asked) -> CellScores | None:
    """Read a cell's scores.

    Raises:
        EncoreError: scores lack the measure, or two seeds were judged on different queries.
    """
    if not asked.reads:
        return None
    scored = [_one(Path(read.folder), asked) for read in asked.reads]
    for read, one in zip(asked.reads, scored, strict=True):
        _same_queries(one, scored[0], f"{read.folder} and {asked.reads[0].folder}", asked)
    return CellScores([read.seed for read in asked.reads], scored)


def differences(ours: CellScores, theirs: CellScores, names: str, asked: Asked) -> Floats:
    """[queries, seeds]: ours minus theirs, for each seed that both have; a system without seeds is paired with each.

    Raises:
        EncoreError: the two share no seed, or were judged on different queries.
    """
    _same_queries(ours.scored[0], theirs.scored[0], names, asked)
    pairs = [(a, b) for a, b in _pairs(ours.seeds, theirs.seeds)]
    if not pairs:
        raise EncoreError(f"{names} share no seed, so they cannot be compared; give both the same `seeds`")
    return np.stack([ours.scored[a].values - theirs.scored[b].values for a, b in pairs], axis=1)


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
    return scores.read_scores(folder)


def _same_queries(one: Scored, other: Scored, names: str, asked: Asked) -> None:
    if one.queries != other.queries:
        raise EncoreError(
            f"{names} were judged on different queries of {asked.dataset} ({len(one.queries)} and "
            f"{len(other.queries)}, or in another order); evaluate both on the same collection"
        )

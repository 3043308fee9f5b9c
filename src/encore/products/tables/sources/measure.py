"""Measures of runs: per-query values of all seeds of a cell, and the paired differences of two cells."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.evaluation.scores import Floats, Scored
from encore.products.tables.layout import CellSlice, Column
from encore.products.tables.sources.base import CellScores, CellValues, ShareSource


class Measures(ShareSource):
    """A measure on a split, read from the scores of the cell's runs."""

    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """None for a row that was not run, or a split that the collection cannot have."""
        found = measure(request)
        return CellValues(found.seeds, found.means(), found.tie_interval(), found) if found else None

    def named(self, request: CellSlice, column: Column) -> str:
        """The name of the measure."""
        return request.value


def measure(request: CellSlice) -> CellScores | None:
    """Read a cell's scores.

    Raises:
        EncoreError: scores lack the measure, or two seeds were judged on different queries.
    """
    if not request.reads:
        return None
    scored = [_one(Path(read.folder), request) for read in request.reads]
    for read, one in zip(request.reads, scored, strict=True):
        _same_queries(one, scored[0], f"{read.folder} and {request.reads[0].folder}", request)
    if request.unseen:
        scored = [one.only(one.shared == 0) for one in scored]
    return CellScores([read.seed for read in request.reads], scored)


def differences(ours: CellScores, theirs: CellScores, names: str, request: CellSlice) -> Floats:
    """[queries, seeds]: ours minus theirs, for each seed that both have; a system without seeds is paired with each.

    Raises:
        EncoreError: the two share no seed, or were judged on different queries.
    """
    _same_queries(ours.scored[0], theirs.scored[0], names, request)
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


def _one(folder: Path, request: CellSlice) -> Scored:
    found = _scores(folder)
    if (request.split, request.value) not in found:
        known = ", ".join(f"{measure} on {split}" for split, measure in found)
        raise EncoreError(f"{folder} has no {request.value} on {request.split}, only {known}; evaluate the run again")
    return found[request.split, request.value]


@cache
def _scores(folder: Path) -> scores.Scores:
    return scores.read_scores(folder)


def _same_queries(one: Scored, other: Scored, names: str, request: CellSlice) -> None:
    if one.queries != other.queries:
        raise EncoreError(
            f"{names} were judged on different queries of {request.dataset} ({len(one.queries)} and "
            f"{len(other.queries)}, or in another order); evaluate both on the same collection"
        )

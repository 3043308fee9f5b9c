"""Per-query values of a cell, of all its seeds, and the paired differences of two cells."""

from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from encore.errors import EncoreError
from encore.evaluation.scores import Floats, Scored, exact_mean, paired_seeds, read_scores
from encore.evaluation.significance import can_be_tested, clustered
from encore.products.tables.grid import CellRequest

_read_scores = cache(read_scores)


@dataclass(frozen=True)
class CellScores:
    """A row under a column: the judged queries, and one ``Scored`` for each seed, all over the same queries."""

    seeds: list[int | None]
    scored: list[Scored]

    @property
    def queries(self) -> list[str]:
        """Ids of the judged queries, the same for all seeds."""
        return self.scored[0].queries

    @property
    def clusters(self) -> list[str]:
        """The cluster of each query, in the order of ``queries``."""
        return self.scored[0].clusters

    @cached_property
    def can_be_tested(self) -> bool:
        """False where nearly all queries are of one cluster, so that nothing is known about the spread."""
        return can_be_tested(self.clusters)

    def means(self) -> list[float]:
        """The measure's mean over queries, for each seed; exactly rounded, so that machines cannot differ."""
        return [exact_mean(one.values) for one in self.scored]

    def tie_interval(self) -> tuple[float, float]:
        """Lowest and highest mean over all orders of tied scores, averaged over seeds."""
        low, high = ([exact_mean(getattr(one, end)) for one in self.scored] for end in ("low", "high"))
        return exact_mean(low), exact_mean(high)

    def interval(self) -> tuple[float, float] | None:
        """The 95 % cluster-robust interval of the mean over queries and seeds; None where nearly all are one cluster.

        See ``evaluation.significance.clustered``.
        """
        if not self.can_be_tested:
            return None
        return clustered(np.stack([one.values for one in self.scored], axis=1), self.clusters).interval()

    def answered(self) -> int:
        """Queries that the run of every seed has an answer to."""
        return int(np.logical_and.reduce([one.answered for one in self.scored]).sum())


def read_cell(request: CellRequest) -> CellScores | None:
    """Read a cell's scores; None for a row that was not run, or a split that the collection cannot have."""
    if not request.reads:
        return None
    scored = [_one(Path(read.folder), request) for read in request.reads]
    for read, one in zip(request.reads, scored, strict=True):
        _same_queries(one, scored[0], f"{read.folder} and {request.reads[0].folder}", request)
    if request.unseen:
        scored = [one.only(one.shared == 0) for one in scored]
    return CellScores([read.seed for read in request.reads], scored)


def differences(ours: CellScores, theirs: CellScores, names: str, request: CellRequest) -> Floats:
    """[queries, seeds]: ours minus theirs, for each seed that both have; a system without seeds is paired with each."""
    _same_queries(ours.scored[0], theirs.scored[0], names, request)
    pairs = paired_seeds(ours.seeds, theirs.seeds)
    if not pairs:
        raise EncoreError(f"{names} share no seed, so they cannot be compared; give both the same `seeds`")
    return np.stack([ours.scored[a].values - theirs.scored[b].values for a, b in pairs], axis=1)


def _one(folder: Path, request: CellRequest) -> Scored:
    found = _read_scores(folder)
    if (request.split, request.value) not in found:
        known = ", ".join(f"{measure} on {split}" for split, measure in found)
        raise EncoreError(f"{folder} has no {request.value} on {request.split}, only {known}; evaluate the run again")
    return found[request.split, request.value]


def _same_queries(one: Scored, other: Scored, names: str, request: CellRequest) -> None:
    if one.queries != other.queries:
        raise EncoreError(
            f"{names} were judged on different queries of {request.dataset} ({len(one.queries)} and "
            f"{len(other.queries)}, or in another order); evaluate both on the same collection"
        )

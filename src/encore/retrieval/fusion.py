"""Fusion of two rankings: the sparse score, weighted, plus the dense one.

For every document p of either list, ``alpha * s_sparse(p) + s_dense(p)``; a score that a list does not have is the
lowest one of that list for this query (TCT-ColBERT, eq. 7). Scores are not normalised. Whether a document is in a list
is asked of the list, never of its score: a score of 0 is a score.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encore.data.rankings import Ranking, rank

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AlignedScores:
    """One query's documents, of either list, with both scores, float64 [documents] each; missing ones are filled in."""

    documents: list[str]
    sparse: Floats
    dense: Floats


def align(sparse: Ranking | None, dense: Ranking | None) -> AlignedScores:
    """Both rankings of a query over the union of their documents (TCT-ColBERT, eq. 7).

    Args:
        sparse, dense: the query's rankings; None for no answer, with all scores 0.
    """
    places: dict[str, int] = {}
    for ranking in (sparse, dense):
        for document in ranking.documents if ranking is not None else ():
            places.setdefault(document, len(places))
    return AlignedScores(list(places), _scores(sparse, places), _scores(dense, places))


def fuse(pair: AlignedScores, weight: float, depth: int | None = None) -> Ranking:
    """The fused ranking: ``weight`` times the sparse score plus the dense one, added in float64, ordered as every run.

    Args:
        weight: alpha of TCT-ColBERT's eq. 7.
        depth: how many documents are kept; all without.
    """
    scores = (weight * pair.sparse + pair.dense).astype(np.float32)
    if depth is None or depth >= len(scores):
        return rank(pair.documents, scores)
    lowest = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    kept = np.flatnonzero(scores >= lowest)  # with all of the tie at the last rank
    return rank([pair.documents[place] for place in kept.tolist()], scores[kept], depth)


def _scores(ranking: Ranking | None, places: dict[str, int]) -> Floats:
    if ranking is None or not len(ranking):
        return np.zeros(len(places))
    found = np.full(len(places), ranking.scores.min(), dtype=np.float64)
    found[[places[document] for document in ranking.documents]] = ranking.scores
    return found

"""What a run says of pairs: the scores of a system that is no model, such as BM25, for its students (CLEAR)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from encore.data.runs import read_run
from encore.data.tokens import TokenStore


def listed_scores(run: Path, store: TokenStore, queries: np.ndarray, passages: np.ndarray) -> np.ndarray:
    """The scores of pairs in a run, float32 [n].

    A passage that the run does not list for a query has the lowest score that it lists, as in a fusion; of a query
    without an answer all are 0.

    Args:
        run: its folder, over these queries at least.
        queries, passages: rows of the store, int64 [n], queries one after the other.
    """
    answers, scores = read_run(run), np.zeros(len(queries), dtype=np.float32)
    bounds = np.append(np.flatnonzero(np.diff(queries, prepend=-1)), len(queries))
    for first, end in pairwise(bounds.tolist()):
        answer = answers.get(store.queries.names[int(queries[first])])
        if answer is not None and len(answer):
            own, lowest = dict(zip(answer.documents, answer.scores, strict=True)), answer.scores.min()
            scores[first:end] = [own.get(name, lowest) for name in store.passages.names.take(passages[first:end])]
    return scores

"""The quality of a model during training: RR@10 or R@10 of validation queries over a small pool of passages.

The pool holds the queries' own positives and a sample of the collection, so values are higher than over the whole
collection and only comparable with each other.
"""

from dataclasses import dataclass

import numpy as np
import torch

from encore.config.datasets import Ignored
from encore.data.collection import Collection, smallest
from encore.data.judged import judged_queries
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import embed
from encore.models.checkpoint import ModelUse
from encore.models.encoder import Encoder

CUT = 10


@dataclass(frozen=True)
class Pool:
    """Queries and the passages that are ranked, in rows of the token store; ``passages`` by ascending document id."""

    queries: np.ndarray  # [Q]
    passages: np.ndarray  # [P]
    positive: np.ndarray  # [Q, P] bool, passages of a query's highest grade
    left_out: np.ndarray  # [Q, P] bool: ignored for a query, as documents excluded from its negatives are


@dataclass(frozen=True)
class Validation:
    """Scores an encoder by a measure over a pool, texts read as ``use`` says; the hook of the training loop."""

    pool: Pool
    store: TokenStore
    use: ModelUse
    measure: str

    def passages(self, encoder: Encoder) -> np.ndarray:
        """The vectors of the passages that are ranked [P, D]."""
        return embed.embed_texts(encoder, self.store.passages, self.pool.passages, self.use.length)

    def __call__(self, encoder: Encoder, step: int) -> float:
        passages = self.passages(encoder)
        queries = embed.embed_texts(encoder.query_tower, self.store.queries, self.pool.queries, self.use.query_length)
        # Torch's product: its threads are in the spec, NumPy's are not.
        scores = (torch.from_numpy(queries) @ torch.from_numpy(passages).T).numpy()
        scores[self.pool.left_out] = -np.inf
        return MEASURES[self.measure](scores, self.pool.positive)


def validation_pool(
    collection: Collection, store: TokenStore, split: str, *, queries: int, passages: int, ignored: Ignored
) -> Pool:
    """A sample of a split's queries, their positives, and a sample of that many other passages.

    The sample is the passages with the smallest digest of their id: it hardly moves when the collection grows a little.
    """
    asked = {name: own for name, own in judged_queries(collection, split, queries, ignored=ignored).items() if own.best}
    if not asked:
        raise EncoreError(f"no query of {collection.folder} has a relevant passage in the split `{split}`; judge some")
    needed = set().union(*(own.best for own in asked.values()))
    sample = smallest((name for name in store.passages.names if name not in needed), passages, "pool")
    documents = sorted(needed.union(sample))
    rows, query_rows = store.passages.names.find(documents), store.queries.names.find(asked)
    positive = np.array([[document in own.best for document in documents] for own in asked.values()])
    excluded = np.array([[document in own.excluded for document in documents] for own in asked.values()])
    try:
        return Pool(
            queries=np.array([query_rows[name] for name in asked]),
            passages=np.array([rows[document] for document in documents]),
            positive=positive,
            left_out=excluded & ~positive,
        )
    except KeyError as error:
        raise EncoreError(f"{error} is judged, but not in the token store; make the tokens again") from error


def mean_reciprocal_rank(scores: np.ndarray, positive: np.ndarray) -> float:
    """Mean over queries of 1 / rank of the first positive, 0 below rank 10.

    Args:
        scores: [Q, P]; of equal scores the later column is the higher, as descending document ids are.
        positive: [Q, P] bool.
    """
    found = _found(scores, positive)
    ranks = found.argmax(axis=1) + 1
    return float(np.where(found.any(axis=1), 1 / ranks, 0.0).mean())


def mean_recall(scores: np.ndarray, positive: np.ndarray) -> float:
    """Mean over queries of the share of their positives in the first 10 ranks; arguments as above."""
    return float((_found(scores, positive).sum(axis=1) / positive.sum(axis=1)).mean())


MEASURES = {"RR@10": mean_reciprocal_rank, "R@10": mean_recall}


def _found(scores: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """bool [Q, 10]: whether the passage at each of the first ranks is a positive."""
    columns = scores.shape[1]
    order = columns - 1 - np.argsort(-scores[:, ::-1], axis=1, kind="stable")
    first: np.ndarray = np.take_along_axis(positive, order, axis=1)[:, :CUT]
    return first

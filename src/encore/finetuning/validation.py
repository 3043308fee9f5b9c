"""The quality of a model during training: RR@10 or R@10 of validation queries over a small pool of passages.

The pool holds the queries' own positives and a sample of the collection, so values are higher than over the whole
collection and only comparable with each other.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import torch

from encore.config.finetuning import FinetuneStep
from encore.data.collection import Collection, smallest, topics
from encore.data.judgments import highest_graded
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import embed
from encore.models.encoder import Encoder

CUT = 10


@dataclass(frozen=True)
class Pool:
    """Queries and the passages that are ranked, in rows of the token store; ``passages`` by ascending document id."""

    queries: np.ndarray  # [Q]
    passages: np.ndarray  # [P]
    positive: np.ndarray  # [Q, P] bool, passages of a query's highest grade
    left_out: np.ndarray  # [Q, P] bool: ignored for a query, as documents excluded from its negatives are


class Validation:
    """Scores an encoder by the step's measure over a pool; the hook of the training loop."""

    def __init__(self, step: FinetuneStep, pool: Pool, store: TokenStore) -> None:
        self.step = step
        self.pool = pool
        self.store = store

    def passages(self, encoder: Encoder) -> np.ndarray:
        """The vectors of the passages that are ranked [P, D]."""
        return embed.embed_texts(encoder, self.store.passages, self.pool.passages, self.step.length)

    def __call__(self, encoder: Encoder, step: int) -> float:
        passages = self.passages(encoder)
        queries = embed.embed_texts(encoder.query_tower, self.store.queries, self.pool.queries, self.step.query_length)
        # Torch's product: its threads are in the spec, NumPy's are not.
        scores = (torch.from_numpy(queries) @ torch.from_numpy(passages).T).numpy()
        scores[self.pool.left_out] = -np.inf
        return MEASURES[self.step.validation_measure](scores, self.pool.positive)


def validation_pool(
    step: FinetuneStep,
    collection: Collection,
    store: TokenStore,
    excluded: Mapping[str, Set[str]] = MappingProxyType({}),
) -> Pool:
    """The step's sample of validation queries, their positives, and a sample of the other passages.

    The sample is the passages with the smallest digest of their id: it hardly moves when the collection grows a little.

    Args:
        excluded: documents that are not negatives of a query, besides the judged ones (``data/judged.py``).
    """
    judgments = collection.qrels(step.valid_split)
    names = topics(collection, step.valid_split, queries=step.validation_queries)
    positives = {name: found for name in names if (found := highest_graded(judgments[name]))}
    if not positives:
        raise EncoreError(
            f"no query of {collection.folder} has a relevant passage in the split `{step.valid_split}`; judge some"
        )
    needed = set().union(*positives.values())
    sample = smallest((name for name in store.passages.names if name not in needed), step.validation_pool, "pool")
    documents = sorted(needed.union(sample))
    rows, query_rows = store.passages.names.find(documents), store.queries.names.find(positives)
    positive = np.array([[document in best for document in documents] for best in positives.values()])
    listed = np.array([[document in excluded.get(name, ()) for document in documents] for name in positives])
    try:
        return Pool(
            queries=np.array([query_rows[name] for name in positives]),
            passages=np.array([rows[document] for document in documents]),
            positive=positive,
            left_out=listed & ~positive,
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

"""Batches of one topic: training queries clustered by their vectors (TAS-B: Hofstaetter et al. 2021, section 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.training.randomness import generator, number

if TYPE_CHECKING:
    from encore.models.encoder import Encoder

ROUNDS = 20  # of k-means


def clustered(encoder: Encoder, store: TokenStore, rows: np.ndarray, length: int, count: int, seed: int) -> np.ndarray:
    """The topic of each query, int64 [n] from 0 to ``count`` - 1: the nearest of k-means' centres of their vectors.

    Args:
        encoder: whose vectors of queries are clustered; on a processor they are the same for all that train together.
        rows: of the queries in the store, [n].
        length: tokens that a query is cut to.

    Raises:
        EncoreError: there are fewer queries than topics.
    """
    import faiss

    from encore.models import embed

    if len(rows) < count:
        raise EncoreError(f"{len(rows)} training queries are fewer than {count} topics; lower `clusters`")
    vectors = embed.embed_texts(encoder.eval().query_tower, store.queries, rows, length)
    drawn = number(seed, "topics") % 2**31
    centres = faiss.Kmeans(vectors.shape[1], count, niter=ROUNDS, seed=drawn, min_points_per_centroid=1)
    centres.train(vectors)
    found: np.ndarray = centres.index.search(vectors, 1)[1][:, 0]
    return found


def order_by_topic(topics: np.ndarray, batch: int, seed: int, epoch: int) -> np.ndarray:
    """The examples of an epoch in order, [batches, batch] int64, those of a batch of one topic.

    Topics come in a random order and their queries too, each once; what is left of a topic is filled up with the next.
    Batches are then shuffled, and the last queries of an epoch are filled up with its first ones.

    Args:
        topics: of each example, int64 [n].
    """
    batch, chance = min(batch, len(topics)), generator(seed, "order", epoch)
    shuffled = chance.permutation(len(topics))
    turn = chance.permutation(topics.max() + 1)
    ordered = shuffled[np.argsort(turn[topics[shuffled]], kind="stable")]
    rows = -(-len(topics) // batch)
    batches = np.append(ordered, ordered[: rows * batch - len(topics)]).reshape(rows, batch)
    found: np.ndarray = chance.permutation(batches)
    return found

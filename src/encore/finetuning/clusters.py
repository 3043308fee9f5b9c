"""Batches of one cluster of training queries, by their vectors (TAS-B: Hofstaetter et al. 2021, section 3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.training.randomness import generator, in_batches

if TYPE_CHECKING:
    from encore.models.encoder import Encoder

ROUNDS = 20  # of k-means


def clustered(
    encoder: Encoder, store: TokenStore, rows: np.ndarray, *, length: int, count: int, chance: int
) -> np.ndarray:
    """The cluster of each query, int64 [n] from 0 to ``count`` - 1: the nearest of k-means' centres of their vectors.

    Args:
        encoder: whose vectors of queries are clustered; on a processor they are the same for all that train together.
        rows: of the queries in the store, [n].
        length: tokens that a query is cut to.
        chance: of the first centres.
    """
    import faiss

    from encore.models import embed

    if len(rows) < count:
        raise EncoreError(f"{len(rows)} training queries are fewer than {count} clusters; lower `clusters`")
    vectors = embed.embed_texts(encoder.eval().query_tower, store.queries, rows, length)
    centres = faiss.Kmeans(vectors.shape[1], count, niter=ROUNDS, seed=chance % 2**31, min_points_per_centroid=1)
    centres.train(vectors)
    found: np.ndarray = centres.index.search(vectors, 1)[1][:, 0]
    return found


def order_by_cluster(clusters: np.ndarray, batch: int, seed: int, epoch: int) -> np.ndarray:
    """An epoch's examples in order, int64 [batches, batch], each batch of one cluster.

    Clusters and their queries come in a random order, each once; the last batch of one is filled up from the next.
    Batches are then shuffled, and the last queries of an epoch are filled up with its first ones.

    Args:
        clusters: of each example, int64 [n].
    """
    chance = generator(seed, "order", epoch)
    shuffled = chance.permutation(len(clusters))
    turn = chance.permutation(clusters.max() + 1)
    ordered = shuffled[np.argsort(turn[clusters[shuffled]], kind="stable")]
    found: np.ndarray = chance.permutation(in_batches(ordered, batch))
    return found

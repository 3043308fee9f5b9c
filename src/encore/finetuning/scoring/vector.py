"""Scores of an encoder that gives each text one vector: their inner products."""

import numpy as np
import torch

from encore.finetuning.scoring.scorer import Scorer
from encore.models import embed
from encore.models.transfer import ToHost


class VectorScorer(Scorer):
    """The inner product of a query's and a passage's vector (of length 1 where the model compares by cosine)."""

    def begun(self, queries: np.ndarray, passages: np.ndarray) -> ToHost:
        """Products on the host, of vectors that a GPU is not waited for one by one."""
        rows, own = np.unique(queries, return_inverse=True)
        query_vectors = self.queries(rows)[:, 0]
        rows, other = np.unique(passages, return_inverse=True)
        scores = np.einsum("nd,nd->n", query_vectors[own], self.passages(rows)[:, 0][other])
        return ToHost(torch.from_numpy(scores))

    def queries(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of queries, rows of the store, float32 [n, 1, D]."""
        tower = self.encoder.query_tower
        return embed.embed_texts(tower, self.store.queries, rows, self.use.query_length, self.at_once)[:, None]

    def passages(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of passages, rows of the store, float32 [n, 1, D]."""
        return embed.embed_texts(self.encoder, self.store.passages, rows, self.use.length, self.at_once)[:, None]

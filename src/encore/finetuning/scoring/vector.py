"""Scores of an encoder that gives each text one vector: their inner products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
import torch
from torch import Tensor

from encore.data.tokens import TokenStore
from encore.finetuning.scoring.resume import Report, ScoreState, no_report
from encore.models import embed
from encore.models.checkpoint import ModelUse
from encore.models.encoder import Encoder


class VectorScorer:
    """The inner product of a query's and a passage's vector (of length 1 where the model compares by cosine)."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, Tensor], use: ModelUse, store: TokenStore) -> None:
        self.encoder, self.use, self.store = encoder, use, store

    def to(self, device: torch.device) -> Self:
        """Move the model to a device and return the scorer."""
        self.encoder.to(device)
        return self

    def score(
        self, queries: np.ndarray, passages: np.ndarray, report: Report = no_report, state: ScoreState | None = None
    ) -> np.ndarray:
        """Score pairs of rows of the store, block by block of passages.

        Args:
            queries, passages: int64 [n], the query and the passage of each pair.
            report: called with the number of pairs that are done.
            state: where scores are kept from which a killed run resumes.

        Returns:
            float32 [n].

        Raises:
            EncoreError: ``state`` is of other pairs.
        """
        found, remaining = (state or ScoreState()).resumed(queries, passages)
        for part in remaining:
            rows, own = np.unique(queries[part], return_inverse=True)
            query_vectors = embed.embed_texts(self.encoder.query_tower, self.store.queries, rows, self.use.query_length)
            rows, other = np.unique(passages[part], return_inverse=True)
            known = embed.embed_texts(self.encoder, self.store.passages, rows, self.use.length)
            found[part] = np.einsum("nd,nd->n", query_vectors[own], known[other])
            report(part.stop)
        return found

"""Scores of an encoder that gives each text one vector: their inner products."""

from __future__ import annotations

import numpy as np

from encore.finetuning.scoring.scorer import Report, Scorer, ScoreState, no_report
from encore.models import embed


class VectorScorer(Scorer):
    """The inner product of a query's and a passage's vector (of length 1 where the model compares by cosine)."""

    def score(
        self, queries: np.ndarray, passages: np.ndarray, report: Report = no_report, state: ScoreState | None = None
    ) -> np.ndarray:
        """Score pairs block by block of passages; arguments and result as of ``Scorer``."""
        found, remaining = (state or ScoreState()).resumed(queries, passages)
        for part in remaining:
            rows, own = np.unique(queries[part], return_inverse=True)
            query_vectors = self.queries(rows)[:, 0]
            rows, other = np.unique(passages[part], return_inverse=True)
            found[part] = np.einsum("nd,nd->n", query_vectors[own], self.passages(rows)[:, 0][other])
            report(part.stop)
        return found

    def queries(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of queries, rows of the store, float32 [n, 1, D]."""
        tower = self.encoder.query_tower
        return embed.embed_texts(tower, self.store.queries, rows, self.use.query_length)[:, None]

    def passages(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of passages, rows of the store, float32 [n, 1, D]."""
        return embed.embed_texts(self.encoder, self.store.passages, rows, self.use.length)[:, None]

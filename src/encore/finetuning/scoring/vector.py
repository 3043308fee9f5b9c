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
            query_vectors = embed.embed_texts(self.encoder.query_tower, self.store.queries, rows, self.use.query_length)
            rows, other = np.unique(passages[part], return_inverse=True)
            known = embed.embed_texts(self.encoder, self.store.passages, rows, self.use.length)
            found[part] = np.einsum("nd,nd->n", query_vectors[own], known[other])
            report(part.stop)
        return found

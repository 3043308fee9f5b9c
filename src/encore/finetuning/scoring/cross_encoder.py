"""Scores of a cross-encoder: every pair is a separate pass."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from encore.data.tokens import TokenStore
from encore.finetuning.scoring.scorer import Report, Scorer, ScoreState, no_report, with_weights
from encore.models import cross_encoder
from encore.models.checkpoint import ModelUse
from encore.models.embed import BATCH
from encore.models.encoder import Encoder


class CrossEncoderScorer(Scorer):
    """The number that a model gives to a query and a passage read as one text."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, Tensor], use: ModelUse, store: TokenStore) -> None:
        super().__init__(encoder, heads, use, store)
        self.modules = with_weights(cross_encoder.score_head(encoder.config), heads)

    @torch.no_grad()
    def score(
        self, queries: np.ndarray, passages: np.ndarray, report: Report = no_report, state: ScoreState | None = None
    ) -> np.ndarray:
        """Score length-sorted batches of pairs; a run may resume on another device. Arguments as of ``Scorer``."""
        state = state or ScoreState()
        found, done = state.load(queries, passages)
        order = np.argsort(self.store.queries.lengths[queries] + self.store.passages.lengths[passages], kind="stable")
        size = BATCH[self.device.type]
        for start in range(done, len(order), size):
            part = order[start : start + size]
            arrays = cross_encoder.pair_inputs(
                [self.store.queries[row] for row in queries[part]],
                [self.store.passages[row] for row in passages[part]],
                self.use.query_length,
                self.use.length,
                self.store.special,
            )
            ids, mask, segments = (torch.from_numpy(array).to(self.device) for array in arrays)
            scores = cross_encoder.score(self.encoder, self.modules[cross_encoder.NAME], ids, mask, segments)
            found[part] = scores.float().cpu().numpy()
            state.save_if_due(found, start + len(part))
            report(start + len(part))
        return found

"""Scores of a cross-encoder: every pair is a separate pass."""

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from encore.data.tokens import TokenStore
from encore.finetuning.scoring.scorer import Scorer, with_weights
from encore.models import cross_encoder, embed
from encore.models.checkpoint import ModelUse
from encore.models.encoder import Encoder
from encore.models.transfer import ToHost, to_device


class CrossEncoderScorer(Scorer):
    """The number that a model gives to a query and a passage read as one text."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, Tensor], use: ModelUse, store: TokenStore) -> None:
        super().__init__(encoder, heads, use, store)
        self.modules = with_weights(cross_encoder.score_head(encoder.config), heads)

    def order(self, queries: np.ndarray, passages: np.ndarray) -> np.ndarray:
        """From short pairs to long ones."""
        return np.argsort(self.store.queries.lengths[queries] + self.store.passages.lengths[passages], kind="stable")

    def parts(self, passages: np.ndarray) -> Iterator[slice]:
        """As many as go through the model at once if they are short."""
        size = embed.PASS[self.device.type].examples
        return (slice(start, start + size) for start in range(0, len(passages), size))

    def begun(self, queries: np.ndarray, passages: np.ndarray) -> ToHost:
        """Every pair is read, as many at once as their tokens allow."""
        asked = np.minimum(self.store.queries.lengths[queries] + 2, self.use.query_length)
        lengths = asked + np.minimum(self.store.passages.lengths[passages] + 1, self.use.length)
        return ToHost(torch.cat(self.at_once.each(lambda part: self._read(queries[part], passages[part]), lengths)))

    def _read(self, queries: np.ndarray, passages: np.ndarray) -> Tensor:
        arrays = cross_encoder.pair_inputs(
            [self.store.queries[row] for row in queries],
            [self.store.passages[row] for row in passages],
            self.use.query_length,
            self.use.length,
            self.store.special,
        )
        ids, mask, segments = map(torch.from_numpy, arrays)
        ids, segments = (to_device(each, self.device) for each in (ids, segments))
        return cross_encoder.score(self.encoder, self.modules[cross_encoder.NAME], ids, mask, segments).float()

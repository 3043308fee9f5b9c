"""Scores of a model that gives each token a vector (ColBERT)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from encore.data.tokens import Sequences, TokenStore
from encore.finetuning.scoring.scorer import Report, Scorer, ScoreState, no_report, with_weights
from encore.models import inputs, late_interaction
from encore.models.checkpoint import ModelUse
from encore.models.embed import BATCH
from encore.models.encoder import Encoder

TOGETHER = 256  # passages of one product with a query's tokens


@dataclass(frozen=True)
class TokenVectors:
    """The vectors of texts' tokens that count, on the model's device.

    ``vectors``: float32 [T, D], texts in any order, the tokens of each in theirs. ``starts``, ``lengths``: int64 [N],
    where those of a text begin, and how many they are.
    """

    vectors: Tensor
    starts: np.ndarray
    lengths: np.ndarray

    def __iter__(self) -> Iterator[np.ndarray]:
        """Those of each text [length, D]."""
        vectors = self.vectors.cpu().numpy()
        return (vectors[start : start + length] for start, length in zip(self.starts, self.lengths, strict=True))

    def padded(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """Vectors [n, L, D] of some texts, and which are of a token: bool [n, L]."""
        lengths = self.lengths[rows]
        counted = np.arange(lengths.max(initial=0)) < lengths[:, None]
        places = np.where(counted, self.starts[rows][:, None] + np.arange(counted.shape[1]), 0)
        device = self.vectors.device
        return self.vectors[torch.from_numpy(places).to(device)], torch.from_numpy(counted).to(device)


class LateInteractionScorer(Scorer):
    """The sum over a query's tokens of the best inner product with a token of the passage (TCT-ColBERT, Eq. 6)."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, Tensor], use: ModelUse, store: TokenStore) -> None:
        super().__init__(encoder, heads, use, store)
        width = len(heads.get(f"{late_interaction.NAME}.weight", ()))
        self.modules = with_weights(late_interaction.token_head(encoder.config, width), heads)

    def passages(self, rows: np.ndarray) -> TokenVectors:
        """The token vectors of passages, rows of the store, in this order; of length 1."""
        return self._tokens(self.encoder, self.store.passages, rows, self.use.length, normalised=True)

    def queries(self, rows: np.ndarray) -> TokenVectors:
        """The token vectors of queries, rows of the store, in this order; of length 1 if the model was trained so."""
        tower, normalised = self.encoder.query_tower, self.use.scorer.get("normalised") == "both"
        return self._tokens(tower, self.store.queries, rows, self.use.query_length, normalised)

    @torch.no_grad()
    def score(
        self, queries: np.ndarray, passages: np.ndarray, report: Report = no_report, state: ScoreState | None = None
    ) -> np.ndarray:
        """Score pairs block by block of passages; arguments and result as of ``Scorer``."""
        found, remaining = (state or ScoreState()).resumed(queries, passages)
        for part in remaining:
            done = part.start
            rows, own = np.unique(queries[part], return_inverse=True)
            query_vectors = self.queries(rows)
            rows, other = np.unique(passages[part], return_inverse=True)
            known = self.passages(rows)
            for query, places in _grouped(own):
                one = query_vectors.padded(np.array([query]))
                scores = late_interaction.max_sim(*one, *known.padded(other[places]))
                found[part][places] = scores[0].float().cpu().numpy()
                done += len(places)
                report(done)
        return found

    @torch.no_grad()
    def _tokens(
        self, tower: Encoder, sequences: Sequences, rows: np.ndarray, length: int, normalised: bool
    ) -> TokenVectors:
        """Embed length-sorted batches, whose bounds are a function of the rows alone."""
        order = np.argsort(sequences.lengths[rows], kind="stable")
        size, linear = BATCH[self.device.type], self.modules[late_interaction.NAME]
        found, lengths = [], np.zeros(len(rows), dtype=np.int64)
        for start in range(0, len(rows), size):
            part = order[start : start + size]
            arrays = inputs.read_inputs(sequences, rows[part], length, tower.config)
            ids, mask = (torch.from_numpy(array).to(self.device) for array in arrays)
            vectors, counted = late_interaction.token_vectors(tower, linear, ids, mask, normalised)
            found.append(vectors.float()[counted])
            lengths[part] = counted.sum(dim=1).cpu().numpy()
        starts = np.empty_like(lengths)
        starts[order] = np.cumsum(lengths[order]) - lengths[order]
        return TokenVectors(torch.cat(found), starts, lengths)


def _grouped(queries: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The places of each query's pairs, at most ``TOGETHER`` at once."""
    order = np.argsort(queries, kind="stable")
    bounds = np.searchsorted(queries[order], np.arange(queries.max(initial=-1) + 2))
    for query, (first, end) in enumerate(pairwise(bounds.tolist())):
        for start in range(first, end, TOGETHER):
            yield query, order[start : min(start + TOGETHER, end)]

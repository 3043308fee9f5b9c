"""Scores of a model that gives each token a vector (ColBERT)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from encore.data.tokens import Sequences, TokenStore
from encore.finetuning.scoring.scorer import Scorer, with_weights
from encore.models import embed, inputs, late_interaction
from encore.models.checkpoint import ModelUse
from encore.models.encoder import Encoder
from encore.models.transfer import ToHost, to_device

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
        where, real = (to_device(torch.from_numpy(each), device) for each in (places, counted))
        return self.vectors[where], real


class LateInteractionScorer(Scorer):
    """The sum over a query's tokens of the best inner product with a token of the passage (TCT-ColBERT, Eq. 6)."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, Tensor], use: ModelUse, store: TokenStore) -> None:
        super().__init__(encoder, heads, use, store)
        width = len(heads.get(f"{late_interaction.NAME}.weight", ()))
        self.modules = with_weights(late_interaction.token_head(encoder.config, width), heads)

    def passages(self, rows: np.ndarray) -> TokenVectors:
        """The token vectors of passages, rows of the store, in this order; of length 1 if the model was trained so."""
        return self._tokens(self.encoder, self.store.passages, rows, self.use.length)

    def queries(self, rows: np.ndarray) -> TokenVectors:
        """The token vectors of queries, rows of the store, in this order; of length 1 if the model was trained so."""
        return self._tokens(self.encoder.query_tower, self.store.queries, rows, self.use.query_length)

    def begun(self, queries: np.ndarray, passages: np.ndarray) -> ToHost:
        """A block's texts are embedded once; then each query is compared with its passages."""
        rows, own = np.unique(queries, return_inverse=True)
        asked = self.queries(rows)
        rows, other = np.unique(passages, return_inverse=True)
        known, places, scores = self.passages(rows), [], []
        for query, of_query in _grouped(own):
            one = asked.padded(np.array([query]))
            scores.append(late_interaction.max_sim(*one, *known.padded(other[of_query]))[0].float())
            places.append(of_query)
        back = to_device(torch.from_numpy(np.argsort(np.concatenate(places))), self.device)
        return ToHost(torch.cat(scores).index_select(0, back))

    @torch.no_grad()
    def _tokens(self, tower: Encoder, sequences: Sequences, rows: np.ndarray, length: int) -> TokenVectors:
        """Embed length-sorted batches, whose bounds are a function of the rows alone, if memory suffices."""
        linear, how = self.modules[late_interaction.NAME], self.use.scorer
        normalised = how.get("normalised", "passages") in (sequences.name, "both")
        first = how.get({"queries": "query_vectors", "passages": "passage_vectors"}[sequences.name])

        def embedded(some: np.ndarray) -> tuple[Tensor, np.ndarray]:
            ids, mask = map(torch.from_numpy, inputs.read_inputs(sequences, some, length, tower.config))
            vectors, _ = late_interaction.token_vectors(
                tower, linear, to_device(ids, self.device), mask, normalised, first
            )
            counted = late_interaction.counted(
                ids, tower.config, first
            )  # again on the host, which need not wait for it
            places = to_device(counted.flatten().nonzero().squeeze(1), self.device)
            return vectors.float().flatten(0, 1).index_select(0, places), counted.sum(dim=1).numpy()

        order, found = embed.in_passes(embedded, sequences, rows, length, self.at_once)
        lengths, starts = np.empty(len(rows), dtype=np.int64), np.empty(len(rows), dtype=np.int64)
        lengths[order] = np.concatenate([of_texts for _, of_texts in found])
        starts[order] = np.cumsum(lengths[order]) - lengths[order]
        return TokenVectors(torch.cat([vectors for vectors, _ in found]), starts, lengths)


def _grouped(queries: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The places of each query's pairs, at most ``TOGETHER`` at once."""
    order = np.argsort(queries, kind="stable")
    bounds = np.searchsorted(queries[order], np.arange(queries.max(initial=-1) + 2))
    for query, (first, end) in enumerate(pairwise(bounds.tolist())):
        for start in range(first, end, TOGETHER):
            yield query, order[start : min(start + TOGETHER, end)]

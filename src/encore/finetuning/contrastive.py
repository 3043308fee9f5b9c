"""Fine-tuning on judged queries: a positive, some negatives, and every other passage of the batch.

The loss of a query is the cross-entropy of its positive among all passages of the batch (InfoNCE; the released code of
COSTA and of BoW: list-wise over the batch). A passage that another query brings and that is relevant for this one is
left out of this query's denominator (``exclude_relevant``; released codes keep it); what the query itself brings always
stays in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from encore.config.finetuning import FinetuneStep
from encore.data.tokens import TokenStore
from encore.finetuning.queries import Example, Query
from encore.finetuning.retrieval_task import RetrievalTask
from encore.models import flops
from encore.training.task import Arrays, ForwardOutput, part_numbers, text_parts

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.config import EncoderConfig
    from encore.models.encoder import Encoder


ROWS = ("passages", "relevant", "log_q")  # of a batch's arrays, what the contrast needs besides vectors


class Contrastive(RetrievalTask):
    """Each query against the passages of its batch, or of its pool in the batch."""

    def __init__(self, step: FinetuneStep, queries: list[Query], store: TokenStore) -> None:
        super().__init__(step, queries, store)
        self.log_q = _log_probabilities(queries, len(store.passages)) if step.logq_correction else None

    def collate(self, examples: list[Example]) -> Arrays:
        """The arrays of judged queries; also ``log_q`` [B, P] float32 where the step corrects for sampling."""
        batch = super().collate(examples)
        return batch if self.log_q is None else {**batch, "log_q": self.log_q[batch["passages"]]}

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """``queries`` [B, D] and ``vectors`` [B, P, D], with ``passages``, ``relevant`` and ``log_q`` of the batch."""
        queries, vectors = self.embed(encoder, batch)
        return ForwardOutput(
            {}, {"queries": queries, "vectors": vectors, **{name: batch[name] for name in ROWS if name in batch}}
        )

    def batch_loss(self, embeddings: dict[str, Tensor]) -> dict[str, Tensor]:
        """InfoNCE over the batch: each query's first passage against all others that are not relevant for it.

        Scores are computed in fp32 at least, whatever the encoder ran in.
        """
        import torch

        passages = embeddings["passages"]
        positive = torch.arange(len(passages), device=passages.device) * passages.shape[1]
        log_q = embeddings["log_q"].flatten() if "log_q" in embeddings else None
        relevant = embeddings["relevant"] if self.step.exclude_relevant else embeddings["relevant"][:, :0]
        ignored = left_out(passages, relevant, self.step.in_batch_group)
        with torch.autocast(passages.device.type, enabled=False):
            scores = self.scores(embeddings) / self.step.temperature
            return {self.term: self.chosen(scores, positive, ignored, log_q)}

    def chosen(self, scores: Tensor, positive: Tensor, ignored: Tensor, log_q: Tensor | None) -> Tensor:
        """The loss of scores [B, B * P], a scalar; other arguments as of ``losses.choice``."""
        from encore.training import losses

        return losses.choice(scores, positive, ignored, log_q)

    def scores(self, rows: dict[str, Tensor]) -> Tensor:
        """Scores of each query and every passage of the batch, [B, B * P]."""
        from encore.models.precision import at_least_float32

        queries, vectors = (at_least_float32(rows[name]) for name in ("queries", "vectors"))
        return queries @ vectors.flatten(0, 1).T


def left_out(passages: Tensor, relevant: Tensor, pool: int | None = None) -> Tensor:
    """True for passages of a batch that are not negatives of a query: others' relevant ones, or those outside its pool.

    Args:
        passages: [B, P], the passages that each query brings, as rows of the token store.
        relevant: [B, R], those that are relevant for each query, padded with -1.
        pool: neighbouring queries that share their passages; all B without.

    Returns:
        [B, B * P] bool.
    """
    import torch

    query = torch.arange(len(passages), device=passages.device)
    owner = query.repeat_interleave(passages.shape[1])
    answers = (relevant[:, :, None] == passages.flatten()).any(dim=1) & (query[:, None] != owner)
    return answers if pool is None else answers | (query[:, None] // pool != owner // pool)


def _log_probabilities(queries: list[Query], passages: int) -> np.ndarray:
    """The logarithm of how often each passage is the one that a query brings, -inf for those that never are.

    A query draws one of its positives, so each counts as the inverse of how many there are (Chang et al. 2020, section
    3: the correcting term of sampled softmax).
    """
    share = np.zeros(passages)
    for query in queries:
        share[list(query.positives)] += 1 / len(query.positives)
    with np.errstate(divide="ignore"):
        return np.log(share / len(queries)).astype(np.float32)


class Pairwise(RetrievalTask):
    """Each query with the passages that it brings itself."""

    term = "pairs"

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The loss over pairs, a scalar, of scores [B, P]; computed in fp32 at least, whatever the encoder ran in."""
        import torch

        from encore.models.precision import at_least_float32
        from encore.training import losses

        queries, vectors = map(at_least_float32, self.embed(encoder, batch))
        with torch.autocast(queries.device.type, enabled=False):
            scores = (vectors @ queries[:, :, None]).squeeze(-1) / self.step.temperature
            return ForwardOutput({"pairs": losses.pairwise(scores[:, 0], scores[:, 1:])}, {})

    def scored(self, batch: Arrays) -> int:
        """The P passages of the query itself."""
        return int(batch["passages"].shape[1])


class PairwiseInBatch(Contrastive):
    """Each query's positive with every passage of its batch, or of its pool in the batch, that is not relevant."""

    term = "pairs"

    def chosen(self, scores: Tensor, positive: Tensor, ignored: Tensor, log_q: Tensor | None) -> Tensor:
        """The mean over all pairs, a scalar, of scores [B, B * P]."""
        from encore.training import losses

        return losses.pairwise_over_pool(scores, positive, ignored)


class LateInteraction(Contrastive):
    """Each query's tokens against the tokens of every passage of its batch (TCT-ColBERT's teacher).

    TCT's released code multiplies the scores by four times the queries of a core; ``temperature`` is the inverse of
    such a factor.
    """

    def heads(self, shape: EncoderConfig) -> nn.ModuleDict:
        """The linear map [D, H] from a token's state to its vector."""
        from encore.models import late_interaction

        return late_interaction.token_head(shape, self.step.token_dimension)

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """Token vectors ``queries`` [B, I, D] and ``vectors`` [B, P, J, D], and which of them count, bool."""
        import torch
        import torch.nn.functional as F

        from encore.models import late_interaction

        linear, places = heads[late_interaction.NAME], batch["places"]

        def tokens(
            tower: Encoder, ids: Tensor, mask: Tensor, length: int, of: str, first: int | None
        ) -> tuple[Tensor, Tensor]:
            normalised = self.step.normalised in (of, "both")
            vectors, counted = late_interaction.token_vectors(tower, linear, ids, mask, normalised, first)
            missing = min(length, first or length) - vectors.shape[1]  # rows have one shape in every part of a batch
            return F.pad(vectors, (0, 0, 0, missing)), F.pad(counted, (0, missing))

        step = self.step
        asked = step.query_length, "queries", step.query_vectors
        known = step.length, "passages", step.passage_vectors
        queries, counted_queries = tokens(encoder.query_tower, batch["query_ids"], batch["query_mask"], *asked)
        parts = encoder.joined(text_parts(batch, "passage"))
        embedded = [tokens(encoder, ids, mask, *known) for ids, mask in parts]
        vectors, counted = (torch.cat(found)[places] for found in zip(*embedded, strict=True))
        rows = {"queries": queries, "counted_queries": counted_queries, "vectors": vectors, "counted": counted}
        return ForwardOutput({}, rows | {name: batch[name] for name in ROWS if name in batch})

    def scores(self, rows: dict[str, Tensor]) -> Tensor:
        """Scores of each query and every passage of the batch, [B, B * P], by ``max_sim`` (TCT-ColBERT, Eq. 6)."""
        from encore.models import late_interaction

        passages = (rows[name].flatten(0, 1) for name in ("vectors", "counted"))
        return late_interaction.max_sim(rows["queries"], rows["counted_queries"], *passages)

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """Forward and backward of all queries and passages, padding included, and of their tokens' products."""
        step, width, passages = self.step, self.step.token_dimension, batch["passages"].size
        asked, known = step.query_vectors or step.query_length, step.passage_vectors or step.length
        most = {"query_ids": asked} | {f"passage_ids_{i}": known for i in part_numbers(batch, "passage")}
        forward = sum(flops.forward(encoder.config, *batch[name].shape) for name in most)
        tokens = sum(len(batch[name]) * min(batch[name].shape[1], least) for name, least in most.items())
        mapped = flops.product(tokens, encoder.config.hidden, width)
        scores = flops.product(len(batch["query_ids"]) * asked, width, passages * known)
        return flops.TRAINING * (forward + mapped + scores)

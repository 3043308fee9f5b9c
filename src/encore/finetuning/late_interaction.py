"""Fine-tuning by late interaction: queries and passages are compared token by token (TCT-ColBERT's teacher).

The loss is that of ``contrastive.py`` over other scores. TCT's released code multiplies them by four times the queries
of a core; ``temperature`` is the inverse of such a factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from encore.finetuning.contrastive import ROWS, Contrastive
from encore.models import flops
from encore.training.task import Arrays, ForwardOutput, part_numbers, text_parts

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.config import EncoderConfig
    from encore.models.encoder import Encoder


class LateInteraction(Contrastive):
    """Each query's tokens against the tokens of every passage of its batch."""

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

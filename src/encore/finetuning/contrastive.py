"""Fine-tuning on judged queries: a positive, some negatives, and every other passage of the batch.

The loss of a query is the cross-entropy of its positive among all passages of the batch (InfoNCE; the released code of
COSTA and of BoW: list-wise over the batch). A passage of the batch that is relevant for a query is no negative of it,
so it is left out of that query's denominator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from encore import losses
from encore.finetuning.judged import Judged, parts
from encore.modeling import operations
from encore.training.task import Arrays, Pass

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.modeling.encoder import Encoder

ROWS = ("passages", "relevant")  # of a batch's arrays, what the contrast needs beside vectors


class Contrastive(Judged):
    """Each query against the passages of its batch."""

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> Pass:
        import torch

        queries = encoder.query_tower.embed(batch["query_ids"], batch["query_mask"])
        embedded = [encoder.embed(batch[f"passage_ids_{i}"], batch[f"passage_mask_{i}"]) for i in parts(batch)]
        vectors = torch.cat(embedded)[batch["places"]]
        return Pass({}, {"queries": queries, "vectors": vectors, **{name: batch[name] for name in ROWS}})

    def contrast(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        """InfoNCE over the batch: each query's first passage against all others that are not relevant for it.

        Scores are computed in fp32 at least, whatever the encoder ran in.
        """
        import torch

        queries, vectors = (losses.wide(rows[name]) for name in ("queries", "vectors"))
        passages, relevant = rows["passages"], rows["relevant"]
        positive = torch.arange(len(passages), device=passages.device) * passages.shape[1]
        ignored = (relevant[:, :, None] == passages.flatten()).any(dim=1)
        with torch.autocast(queries.device.type, enabled=False):
            loss = losses.info_nce(queries, vectors.flatten(0, 1), positive, self.step.temperature, ignored)
        return {"contrast": loss}

    def weights(self, progress: float) -> dict[str, float]:
        return {"contrast": 1.0}

    def operations(self, encoder: Encoder, batch: Arrays) -> float:
        """Forward and backward of all queries and passages, padding included, and of their scores."""
        names = ["query_ids", *(f"passage_ids_{i}" for i in parts(batch))]
        forward = sum(operations.forward(encoder.shape, *batch[name].shape) for name in names)
        scores = operations.product(len(batch["passages"]), encoder.dimension, batch["passages"].size)
        return operations.TRAINING * (forward + scores)

"""Fine-tuning on judged queries by pairs: each positive against each negative.

Of its own query's alone (CPDAE, section 4.1.3; ANCE), or of the whole batch's (STAR). CPDAE's text calls its loss
pairwise; the released code of the same authors' COSTA is list-wise over the batch (``contrastive.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from encore.finetuning.contrastive import Contrastive
from encore.finetuning.retrieval_task import RetrievalTask
from encore.training.task import Arrays, ForwardOutput

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.encoder import Encoder


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

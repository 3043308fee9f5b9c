"""Fine-tuning on judged queries, each positive against each negative that its own query brings (CPDAE, section 4.1.3).

No passage of another query takes part. The papers' text calls its loss pairwise; the released code of the same
authors' COSTA is list-wise over the batch (``contrastive.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

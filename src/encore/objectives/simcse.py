"""SimCSE, unsupervised: a text read twice under dropout is closer to itself than to others (Gao et al. 2021).

Recipe of the released code, with this collection's texts for its sentences and the backbone's pooling for its [CLS].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from encore.models import flops, inputs
from encore.objectives.base import Arrays, ForwardOutput
from encore.objectives.parts.chunks import TextFields, Texts

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.encoder import Encoder

VIEWS = 2


class SimcseFields(TextFields):
    """Fields of SimCSE."""

    contrasts_texts: ClassVar[bool] = True
    temperature: float = Field(0.05, gt=0, description="The number that cosines are divided by.")
    save_heads: tuple[str, ...] | None = Field(
        (), description="The modules that are saved: none, since the layer behind the pooling is for training only."
    )
    dropout: float = Field(
        0.1, gt=0, lt=1, description="The encoder's dropout rate in this step, in place of the backbone's."
    )


class Simcse(Texts[SimcseFields]):
    """``loss = mean_i -log( exp(cos(z_i, z'_i) / t) / sum_j exp(cos(z_i, z'_j) / t) )``, z and z' of two readings.

    ``z = tanh(W h + b)`` with h the pooled representation; this layer serves the training alone, h is what is kept.
    The readings differ by dropout alone. Outside training mode there is none, so the two are equal and the loss says
    only how far apart the texts are.
    """

    Fields = SimcseFields
    views = VIEWS
    impl = 2  # 2: batches are random samples

    def example(self, index: int, rng: np.random.Generator) -> np.ndarray:
        """The pieces of a text."""
        return self.chunks.read(self.usable[index], rng)

    def collate(self, examples: list[np.ndarray]) -> Arrays:
        """``ids``, ``mask`` [2B, L]: each text twice, next to itself."""
        twice = [ids for ids in examples for _ in range(VIEWS)]
        ids, mask = inputs.pad(twice, self.fields.length, self.store.special)
        return {"ids": ids, "mask": mask}

    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """The layer behind the pooling, a linear map [H, H] and tanh."""
        from torch import nn

        from encore.models.heads import initialise

        width = encoder.config.hidden
        return nn.ModuleDict({"simcse": initialise(nn.Sequential(nn.Linear(width, width), nn.Tanh()))})

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """``views`` [B, 2, H]: both readings of each text."""
        set_dropout(encoder, self.fields.dropout)
        hidden = self.states(encoder, batch)
        vectors = heads["simcse"](encoder.pooled(hidden, batch["ids"], batch["mask"]))
        return ForwardOutput({}, {"views": vectors.unflatten(0, (-1, VIEWS))})

    def batch_loss(self, embeddings: dict[str, Tensor]) -> dict[str, Tensor]:
        """InfoNCE of the first readings against the second, from ``views`` [B, 2, H] (Gao et al. 2021, Eq. 4)."""
        import torch
        import torch.nn.functional as F

        from encore.training import losses

        first, second = F.normalize(embeddings["views"], dim=-1).unbind(dim=1)
        own = torch.arange(len(first), device=first.device)
        return {"contrast": losses.info_nce(first, second, own, self.fields.temperature)}

    def loss_weights(self, progress: float) -> dict[str, float]:
        """The contrast alone, with weight 1."""
        return {"contrast": 1.0}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """Three forward passes' worth: both readings, the layer behind them, their similarities."""
        views, width = len(batch["ids"]), encoder.config.hidden
        head = flops.product(views, width, width)
        similarities = flops.product(views / VIEWS, width, views / VIEWS)
        return flops.TRAINING * (self.encoded(encoder, batch) + head + similarities)


def set_dropout(encoder: Encoder, rate: float) -> None:
    """Give every dropout of the encoder this rate; a saved model has its backbone's, by its configuration."""
    from torch import nn

    from encore.models.encoder import SelfAttention

    for module in encoder.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
        elif isinstance(module, SelfAttention):
            module.rate = rate


OBJECTIVE = Simcse

"""Condenser: a head that sees early tokens has to lean on the late representation (Gao and Callan, EMNLP 2021)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import Field

from encore.config.validation import Positive
from encore.models import flops
from encore.objectives.base import Arrays, ForwardOutput
from encore.objectives.parts.decoding import layer_flops
from encore.objectives.parts.masked_texts import MaskedTexts, MaskingFields

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.encoder import Encoder


class CondenserFields(MaskingFields):
    """Fields of Condenser and coCondenser; defaults are those of the released code."""

    whole_word: bool = Field(True, description="Whether words are masked as a whole.")
    head_layers: Positive = Field(2, description="The number of layers of the head.")
    early_layers: Positive | None = Field(
        None, description="The layers behind which the head reads the tokens; the lower half if nothing is given."
    )
    head_weight: float = Field(1.0, ge=0, description="The weight of the head's MLM loss.")
    mlm_weight: float = Field(1.0, ge=0, description="The weight of the encoder's own MLM loss (`late_mlm`).")


F = TypeVar("F", bound=CondenserFields)


class Condenser(MaskedTexts[F]):
    """``L_head + L_MLM``: the masked pieces, predicted from the head's states and from the encoder's (Eq. 5, 6).

    The head's layers read ``[h, e_1, ..., e_L]`` (Eq. 4): h is the pooled representation of the last layer, the state
    of [CLS] in the paper; e are the states behind ``early_layers``. Both losses share the vocabulary head.
    """

    Fields = CondenserFields

    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """The vocabulary head, and new layers of the encoder's shape over h and the early states."""
        from encore.models.decoders import AutoEncodingDecoder

        heads = super().heads(encoder)
        heads["head"] = AutoEncodingDecoder(encoder.config, self.fields.head_layers)
        return heads

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The losses of the head and of the encoder, scalars; where they are contrasted, ``texts`` [B, H], pooled."""
        import torch

        def run(ids: Tensor, mask: Tensor) -> Tensor:
            return torch.cat(encoder.early_and_late(ids, mask, self.fields.early_layers), dim=-1)

        early, late = self.states(run, batch).chunk(2, dim=-1)
        texts = encoder.pooled(late, batch["ids"], batch["mask"])
        states = heads["head"](texts, early, batch["mask"])
        terms = {name: self.masked_lm(encoder, heads, read, batch) for name, read in (("head", states), ("mlm", late))}
        return ForwardOutput(terms, {"texts": texts} if self.has_contrast else {})

    def loss_weights(self, progress: float) -> dict[str, float]:
        """``head_weight`` and ``mlm_weight``, at all times."""
        return {"head": self.fields.head_weight, "mlm": self.fields.mlm_weight}

    def loss_denominators(self, batch: Arrays) -> dict[str, int]:
        """Masked pieces for both."""
        return dict.fromkeys(("head", "mlm"), len(batch["masked"]))

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """The operations of MLM, and of the head's layers with the vocabulary head once more."""
        head = layer_flops(encoder.config, self.fields.head_layers, *batch["ids"].shape)
        again = flops.mlm_head(encoder.config, len(batch["masked"]))
        return super().flops(encoder, batch) + flops.TRAINING * (head + again)


OBJECTIVE = Condenser

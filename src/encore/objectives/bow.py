"""Bag-of-words prediction: a masked text's representation names the set of its pieces ("Drop your Decoder", SIGIR'24).

The paper's Eq. 12 and the released code disagree on the head; the field ``variant`` runs either. Both give a softmax
with a uniform soft target, not a sigmoid for each piece: so does the code, and the paper calls it a cross-entropy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from encore.config.validation import MaskedShare
from encore.models import flops
from encore.objectives.base import Arrays, ForwardOutput
from encore.objectives.parts.masked_texts import MaskedText, MaskedTexts, MaskingFields, bags

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.encoder import Encoder


class BowFields(MaskingFields):
    """Fields of bag-of-words prediction (BoW paper)."""

    mask_ratio: MaskedShare = Field(0.30, description="The share of a text's tokens that are masked.")
    whole_word: bool = Field(True, description="Whether words are masked as a whole.")
    variant: Literal["code", "paper"] = Field(
        "code", description="The output head: the whole MLM head (`code`) or the embedding matrix (`paper`, Eq. 12)."
    )
    bow_weight: float = Field(1.0, ge=0, description="The weight of the bag-of-words loss; MLM has 1.")
    weight_schedule: Literal["constant", "cosine_01"] = Field(
        "constant", description="How the weight changes: not at all (the paper), or falling along a cosine."
    )


class Bow(MaskedTexts[BowFields]):
    """``loss = L_MLM + w * CE(logits(h), T)`` with T uniform over the set of the unmasked text's pieces (Eq. 12, 13).

    h is the pooled representation before any linear head or normalisation.
    """

    Fields = BowFields

    def collate(self, examples: list[MaskedText]) -> Arrays:
        """The arrays of MLM, and ``bag`` [B, K] of the unmasked texts as ``bags`` makes it."""
        return {**super().collate(examples), "bag": bags([text.ids for text in examples], self.store.special)}

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The losses of MLM and of the bag of words, scalars: means over masked pieces and over texts (Eq. 12, 13)."""
        from encore.training import losses

        hidden = encoder(batch["ids"], batch["mask"])
        mlm = self.masked_lm(encoder, heads, hidden, batch)
        logits = self._logits(encoder, heads, encoder.pooled(hidden, batch["ids"], batch["mask"]))
        bow = losses.soft_cross_entropy(logits, losses.uniform_targets(batch["bag"], logits.shape[1]))
        return ForwardOutput({"mlm": mlm, "bow": bow}, {})

    def loss_weights(self, progress: float) -> dict[str, float]:
        """The code's weight falls with optimiser steps here; there it counts micro-batches, a mistake."""
        fall = 1.0 if self.fields.weight_schedule == "constant" else 0.1 + 0.45 * (1 + math.cos(math.pi * progress))
        return {"mlm": 1.0, "bow": self.fields.bow_weight * fall}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """The operations of MLM, and of the output head over each text's representation."""
        shape, texts = encoder.config, len(batch["ids"])
        paper = flops.product(texts, shape.hidden, shape.vocabulary)
        head = flops.mlm_head(shape, texts) if self.fields.variant == "code" else paper
        return super().flops(encoder, batch) + flops.TRAINING * head

    def _logits(self, encoder: Encoder, heads: nn.ModuleDict, representation: Tensor) -> Tensor:
        """[B, V]."""
        if self.fields.variant == "code":
            logits: Tensor = heads["mlm"](representation, encoder.word_embeddings)
            return logits
        return representation @ encoder.word_embeddings.T


OBJECTIVE = Bow

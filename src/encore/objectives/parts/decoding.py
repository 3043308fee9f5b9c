"""The base of objectives with a decoder: MLM, and a text rebuilt from the representation of its masked copy."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from pydantic import Field

from encore.config.validation import MaskedShare, Positive
from encore.models import flops, inputs
from encore.objectives.base import Arrays, ForwardOutput
from encore.objectives.parts.masked_texts import MaskedTexts, MaskingFields

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.config import EncoderConfig
    from encore.models.encoder import Encoder


class DecodingFields(MaskingFields):
    """Fields of every objective with a decoder; the masking is that of the released launch scripts."""

    mask_ratio: MaskedShare = Field(0.30, description="The share of a text's tokens that are masked.")
    whole_word: bool = Field(True, description="Whether words are masked as a whole.")
    mlm_weight: float = Field(1.0, ge=0, description="The weight of the encoder's MLM loss.")
    decoder_weight: float = Field(1.0, ge=0, description="The weight of the decoder's loss.")


class LayeredFields(DecodingFields):
    """Fields of every objective whose decoder has a number of layers."""

    decoder_layers: Positive = Field(1, description="The number of layers of the decoder.")


F = TypeVar("F", bound=DecodingFields)


class Decoding(MaskedTexts[F]):
    """``loss = w_MLM * L_MLM + w_dec * L_dec`` (BoW paper, Eq. 13), L_dec a mean over all predicted tokens of a batch.

    The decoder reads h, the pooled representation before any linear head or normalisation, and the text in the very
    window that the encoder reads. Its vocabulary head runs at positions with a loss only.
    """

    def collate(self, examples: list[Any]) -> Arrays:
        """The arrays of MLM, and those that ``rebuild`` gives."""
        return {**super().collate(examples), **self.rebuild(examples)}

    def rebuild(self, examples: list[Any]) -> Arrays:
        """The decoder's arrays: the unmasked text and what follows each token, unless an objective asks for others.

        Returns:
            At least ``text`` [B, L] int64, the text that the decoder reads; ``decoded`` [N] int64, flat positions
            (row * L + column) at which it predicts; ``decoded_labels`` [N] int64, the pieces to predict there.
        """
        return following(*self.unmasked(examples))

    def unmasked(self, examples: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """The unmasked texts, int64 [B, L], and which of their tokens are real, bool [B, L]."""
        return inputs.pad([example.ids for example in examples], self.fields.length, self.store.special)

    @abstractmethod
    def decode(self, encoder: Encoder, decoder: nn.Module, h: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """The decoder's states [B, L, H] for representations h [B, H]."""

    @abstractmethod
    def decoder(self, shape: EncoderConfig) -> nn.Module:
        """A new decoder."""

    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """The vocabulary head and the decoder."""
        heads = super().heads(encoder)
        heads["decoder"] = self.decoder(encoder.config)
        return heads

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The losses of MLM and of the decoder, scalars: means over masked and over predicted pieces."""
        from encore.models.heads import at
        from encore.training import losses

        hidden = encoder(batch["ids"], batch["mask"])
        mlm = self.masked_lm(encoder, heads, hidden, batch)
        states = self.decode(encoder, heads["decoder"], encoder.pooled(hidden, batch["ids"], batch["mask"]), batch)
        states, bias = self.vocabulary_head(heads, at(states, batch["decoded"]))
        decoder = losses.masked_lm(states, encoder.word_embeddings, bias, batch["decoded_labels"])
        return ForwardOutput({"mlm": mlm, "decoder": decoder}, {})

    def vocabulary_head(self, heads: nn.ModuleDict, states: Tensor) -> tuple[Tensor, Tensor | None]:
        """Operands of the products with the word embeddings, from states [N, H]: states [N, H] and a bias [V], if any.

        They are the transform's and the bias of the encoder's own MLM head.
        """
        head: Any = heads["mlm"]
        return head.transform(states), head.bias

    def loss_weights(self, progress: float) -> dict[str, float]:
        """``mlm_weight`` and ``decoder_weight``, at all times."""
        return {"mlm": self.fields.mlm_weight, "decoder": self.fields.decoder_weight}

    def loss_denominators(self, batch: Arrays) -> dict[str, int]:
        """Masked pieces M for MLM, predicted pieces N for the decoder."""
        return {**super().loss_denominators(batch), "decoder": len(batch["decoded"])}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """The operations of MLM, and of the decoder with its vocabulary head at the predicted positions."""
        decoder = self.decoder_flops(encoder.config, *batch["ids"].shape)
        head = self.head_flops(encoder.config, len(batch["decoded"]))
        return super().flops(encoder, batch) + flops.TRAINING * (decoder + head)

    def decoder_flops(self, shape: EncoderConfig, batch: int, length: int) -> float:
        """Forward operations of the decoder without its vocabulary head, for ``batch`` texts of ``length`` tokens.

        They are those of Transformer layers of the encoder's shape: one, unless the fields have another number.
        """
        return layer_flops(shape, getattr(self.fields, "decoder_layers", 1), batch, length)

    def head_flops(self, shape: EncoderConfig, positions: int) -> float:
        """Forward operations of the decoder's vocabulary head at ``positions`` positions."""
        return flops.mlm_head(shape, positions)


def following(text: np.ndarray, mask: np.ndarray) -> Arrays:
    """The next token at every place that has one; the closing [SEP] is predicted too, as in the released code.

    Args:
        text: int64 [B, L], the unmasked texts.
        mask: bool [B, L], true at real tokens.

    Returns:
        ``text``; ``decoded`` [N] int64, flat positions (row * L + column); ``decoded_labels`` [N], the next pieces.
    """
    followed = np.zeros_like(mask)
    followed[:, :-1] = mask[:, 1:]
    positions = np.flatnonzero(followed)
    return {"text": text, "decoded": positions, "decoded_labels": text.ravel()[positions + 1]}


def layer_flops(shape: EncoderConfig, count: int, batch: int, length: int) -> float:
    """Operations of so many Transformer layers of the encoder's shape, forward."""
    return flops.forward(replace(shape, layers=count, projection_dim=None), batch, length)

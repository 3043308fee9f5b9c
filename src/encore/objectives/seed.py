"""SEED-Encoder: a decoder that sees two tokens has to lean on the representation (Lu et al. 2021).

The decoder follows the released model code; its pre-training program was never published. The encoder stays a BERT,
where the released one is a RoBERTa with another vocabulary: our ``seed`` is a substitute for that checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from encore.config.validation import Positive
from encore.models import flops
from encore.objectives.parts.decoding import Decoding, DecodingFields, layer_flops

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.config import EncoderConfig
    from encore.models.decoders import SeedDecoder
    from encore.models.encoder import Encoder


class SeedFields(DecodingFields):
    """Fields of SEED-Encoder."""

    decoder_layers: Positive = Field(3, description="The number of layers of the decoder.")
    attention_window: Positive = Field(
        2, description="The tokens that the decoder sees besides the first, its own included."
    )
    mlm_weight: float = Field(0.5, ge=0, description="The weight of the encoder's MLM loss.")
    decoder_weight: float = Field(0.5, ge=0, description="The weight of the decoder's loss.")


class Seed(Decoding[SeedFields]):
    """``loss = 0.5 * L_MLM + 0.5 * L_dec`` with ``L_dec = -mean_i log p(t_i | h, t_0, t_i-2, t_i-1)``.

    The halves are the released configuration's ``train_ratio`` of 0.5:0.5. Logits are products with the encoder's word
    embeddings, without transform and bias. Predicted are all tokens behind [CLS], the closing [SEP] included.
    """

    Fields = SeedFields

    def decoder(self, shape: EncoderConfig) -> SeedDecoder:
        """New decoder layers of the encoder's width."""
        from encore.models.decoders import SeedDecoder

        return SeedDecoder(shape, self.fields.decoder_layers)

    def decode(self, encoder: Encoder, decoder: nn.Module, h: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """States [B, L, H] of ``text`` [B, L] under h [B, H], each position seeing the first and a window of others."""
        import torch.nn.functional as F

        from encore.models.decoders import causal

        seen = causal(batch["text"].shape[1], self.fields.attention_window, h.device)
        states: Tensor = decoder(h, F.embedding(batch["text"], encoder.word_embeddings), seen)
        return states

    def vocabulary_head(self, heads: nn.ModuleDict, states: Tensor) -> tuple[Tensor, None]:
        """States [N, H] as they are: products with the word embeddings, without transform and bias."""
        return states, None

    def decoder_flops(self, shape: EncoderConfig, batch: int, length: int) -> float:
        """Forward operations of the layers and of the memory of h in each, for ``batch`` texts of ``length`` tokens."""
        memory = flops.product(batch, shape.hidden, shape.hidden)
        memory += flops.product(batch * length, shape.hidden, shape.hidden)
        own = layer_flops(shape, self.fields.decoder_layers, batch, length)
        return own + self.fields.decoder_layers * memory

    def head_flops(self, shape: EncoderConfig, positions: int) -> float:
        """Forward operations of the products with the word embeddings at ``positions`` positions."""
        return flops.product(positions, shape.hidden, shape.vocabulary)


OBJECTIVE = Seed

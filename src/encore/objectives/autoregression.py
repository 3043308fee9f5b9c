"""Auto-regression: a GPT-2 layer continues the text from its representation ("Drop your Decoder", SIGIR'24)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from encore.config.validation import Positive
from encore.objectives.parts.decoding import Decoding, LayeredFields

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.config import EncoderConfig
    from encore.models.decoders import AutoRegressionDecoder
    from encore.models.encoder import Encoder


class AutoregressionFields(LayeredFields):
    """Fields of auto-regression (BoW paper)."""

    attention_window: Positive | None = Field(
        None, description="The tokens that the decoder sees besides h, its own included; without it, all before."
    )


class Autoregression(Decoding[AutoregressionFields]):
    """``L_dec = -mean_i log p(t_i | h, t_1 .. t_i-1)`` over all tokens behind [CLS], the closing [SEP] included."""

    Fields = AutoregressionFields

    def decoder(self, shape: EncoderConfig) -> AutoRegressionDecoder:
        """New GPT-2 layers of the encoder's width."""
        from encore.models.decoders import AutoRegressionDecoder

        return AutoRegressionDecoder(shape, self.fields.decoder_layers)

    def decode(self, encoder: Encoder, decoder: nn.Module, h: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """States [B, L, H] of the text ``text`` [B, L] after h [B, H], each position seeing what precedes it."""
        from encore.models.decoders import causal

        seen = causal(batch["text"].shape[1], self.fields.attention_window, h.device)
        states: Tensor = decoder(h, encoder.embeddings(batch["text"], None), seen)
        return states


OBJECTIVE = Autoregression

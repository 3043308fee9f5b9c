"""Auto-encoding: a BERT layer restores a second masking of the text ("Drop your Decoder", SIGIR'24)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pydantic import Field

from encore.config.validation import MaskedShare
from encore.objectives.base import Arrays
from encore.objectives.parts.decoding import Decoding, LayeredFields
from encore.objectives.parts.masked_texts import Masked, MaskedText, MaskedTexts, choose_words, corrupt, count_to_mask

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.config import EncoderConfig
    from encore.models.decoders import AutoEncodingDecoder
    from encore.models.encoder import Encoder


class AutoencodingFields(LayeredFields):
    """Fields of auto-encoding (BoW paper)."""

    decoder_mask_ratio: MaskedShare = Field(
        0.50, description="The share of a text's tokens that are masked for the decoder; the default is RetroMAE's."
    )


class TwiceMasked(NamedTuple):
    """An example: the pieces of a text, its masking for the encoder, and an independent one for the decoder."""

    ids: np.ndarray
    masked: Masked
    again: Masked


class Autoencoding(Decoding[AutoencodingFields]):
    """``L_dec = -mean log p(masked piece | h, the text under a second mask)``; 80/10/10, by whole words.

    The second masking is of the window that the encoder reads; the released code cuts long texts again for it.
    """

    Fields = AutoencodingFields

    def example(self, index: int, rng: np.random.Generator) -> TwiceMasked:
        """A text masked for the encoder, and masked again by whole words, independently, for the decoder."""
        ids, masked = self.text(index, rng)
        count = count_to_mask(len(ids), self.fields.decoder_mask_ratio)
        chosen = choose_words(self.store.word_starts(ids), len(ids), count, rng)
        return TwiceMasked(ids, masked, corrupt(ids, chosen, self.store.vocabulary, self.store.special.mask, rng))

    def rebuild(self, examples: list[TwiceMasked]) -> Arrays:
        """The text under its second mask: ``text`` [B, L], ``decoded`` and ``decoded_labels`` [N], all int64."""
        again = MaskedTexts.collate(self, [MaskedText(example.ids, example.again) for example in examples])
        return {"text": again["ids"], "decoded": again["masked"], "decoded_labels": again["labels"]}

    def decoder(self, shape: EncoderConfig) -> AutoEncodingDecoder:
        """New bidirectional Transformer layers of the encoder's shape."""
        from encore.models.decoders import AutoEncodingDecoder

        return AutoEncodingDecoder(shape, self.fields.decoder_layers)

    def decode(self, encoder: Encoder, decoder: nn.Module, h: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """States [B, L, H] of the text under its second mask, from h [B, H] and ``text`` [B, L]."""
        states: Tensor = decoder(h, encoder.embeddings(batch["text"], None), batch["mask"])
        return states


OBJECTIVE = Autoencoding

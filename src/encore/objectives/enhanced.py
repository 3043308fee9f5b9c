"""Enhanced decoding: each token is rebuilt from the representation and its own sample of the other tokens (RetroMAE).

Xiao et al. (EMNLP 2022), section 3.3. The released code adds the queries to what attention gives, Eq. 9 does not; the
field ``variant`` runs either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from pydantic import Field

from encore.config.validation import Positive, Share
from encore.objectives.base import Arrays
from encore.objectives.parts.decoding import Decoding, DecodingFields
from encore.objectives.parts.masked_texts import Masked, count_to_mask

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.config import EncoderConfig
    from encore.models.decoders import EnhancedDecoder
    from encore.models.encoder import Encoder


class EnhancedFields(DecodingFields):
    """Fields of enhanced decoding (RetroMAE; BoW paper, Eq. 9)."""

    decoder_mask_ratio: Share = Field(
        0.50, description="The share of a text's tokens that each mask hides from the decoder."
    )
    visible_masks: Positive = Field(
        256, description="The most masks sampled for a text; each position uses one of them."
    )
    variant: Literal["code", "paper"] = Field(
        "code",
        description="Whether the decoder adds its query to what attention gives (`code`) or not (`paper`, Eq. 9).",
    )


class Screened(NamedTuple):
    """An example: the pieces of a text [n], its masking for the encoder, and what the decoder's masks are drawn from.

    ``words``: int64 [n], the word of each piece, counted from 0. ``number``: their chance, of 63 bits.
    """

    ids: np.ndarray
    masked: Masked
    words: np.ndarray
    number: int


class Enhanced(Decoding[EnhancedFields]):
    """``L_dec = -mean_i log p(t_i | h, p_i, {t_j : j in S_i})`` over all tokens but [CLS] and [SEP] (Eq. 8 to 11).

    ``S_i`` is what one of K whole-word masks leaves, less i itself; h and [SEP] always stay, for whole words are drawn
    from the text alone. The masks are drawn on the device: ``models/word_masks.py``.
    """

    Fields = EnhancedFields
    impl = 2

    def example(self, index: int, rng: np.random.Generator) -> Screened:
        """A text, masked for the encoder, its words, and a number that all masks of its decoder follow from."""
        ids, masked = self.text(index, rng)
        starts = self.store.word_starts(ids)
        words = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(ids)))
        return Screened(ids, masked, words, int(rng.integers(1 << 63)))

    def rebuild(self, examples: list[Screened]) -> Arrays:
        """The unmasked texts, and what each position sees of them.

        Returns:
            ``text`` [B, L], ``decoded`` and ``decoded_labels`` [N] int64, as of every decoder; ``words`` [B, L],
            ``numbers`` and ``budgets`` [B] int64, of which ``word_masks.visible`` makes each position's mask.
        """
        text, _ = self.unmasked(examples)
        words = np.full(text.shape, -1)
        for row, one in enumerate(examples):
            words[row, 1 : 1 + len(one.words)] = one.words
        positions = np.flatnonzero(words >= 0)
        ratio = self.fields.decoder_mask_ratio
        return {
            "text": text,
            "decoded": positions,
            "decoded_labels": text.ravel()[positions],
            "words": words,
            "numbers": np.array([one.number for one in examples]),
            "budgets": np.array([count_to_mask(len(one.ids), ratio) for one in examples]),
        }

    def decoder(self, shape: EncoderConfig) -> EnhancedDecoder:
        """A new decoder of one layer of the encoder's shape."""
        from encore.models.decoders import EnhancedDecoder

        return EnhancedDecoder(shape)

    def decode(self, encoder: Encoder, decoder: nn.Module, h: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """States [B, L, H] from h [B, H] and ``text`` [B, L], each position under its own mask (Eq. 8 and 9)."""
        from encore.models.transfer import to_device
        from encore.models.word_masks import visible

        chance = (batch["words"], batch["numbers"], batch["budgets"])
        seen = visible(*chance, to_device(batch["mask"], h.device), self.fields.visible_masks)
        positions = encoder.embeddings.position_embeddings.weight[: batch["text"].shape[1]]
        embedded = encoder.embeddings(batch["text"], None)
        states: Tensor = decoder(h, positions, embedded, seen, query_residual=self.fields.variant == "code")
        return states


OBJECTIVE = Enhanced

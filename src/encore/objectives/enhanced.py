"""Enhanced decoding: each token is rebuilt from the representation and a sample of the others of its own (RetroMAE).

Xiao et al. (EMNLP 2022), section 3.3. The released code adds the queries to what attention gives, Eq. 9 does not; the
field ``variant`` runs either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from encore.config.strict import Positive, Share
from encore.objectives.base import Arrays
from encore.objectives.parts.decoding import Decoding, DecodingFields, layer_flops
from encore.objectives.parts.masking import Masked, count_to_mask, word_starts
from encore.objectives.parts.word_masks import word_masks

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.config import EncoderConfig
    from encore.models.decoders import EnhancedDecoder
    from encore.models.encoder import Encoder


class EnhancedFields(DecodingFields):
    """Fields of enhanced decoding (RetroMAE; BoW paper, Eq. 9)."""

    renamed: ClassVar[dict[str, str]] = {**DecodingFields.renamed, "reading": "variant"}
    objective: Literal["enhanced"]
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
    """An example: the pieces of a text [n], its masking for the encoder, and what the decoder's positions see of it.

    ``hidden``: uint8 [K, ceil((n + 2) / 8)], K masks over [CLS], text and [SEP], packed, the lowest bit first.
    ``picks``: int64 [n + 2], the mask of each position.
    """

    ids: np.ndarray
    masked: Masked
    hidden: np.ndarray
    picks: np.ndarray


class Enhanced(Decoding[EnhancedFields]):
    """``L_dec = -mean_i log p(t_i | h, p_i, {t_j : j in S_i})`` over all tokens but [CLS] and [SEP] (Eq. 8 to 11).

    ``S_i`` is what one of K whole-word masks leaves, less i itself; h and [SEP] always stay, for whole words are drawn
    from the text alone. The masks come packed, 16 KB for a text of 512, and become rows on the device.
    """

    Fields = EnhancedFields

    def example(self, index: int, rng: np.random.Generator) -> Screened:
        """A text, masked for the encoder, the masks sampled for the decoder, and one of these for each position."""
        ids, masked = self.text(index, rng)
        tokens = len(ids) + 2
        count = count_to_mask(len(ids), self.fields.decoder_mask_ratio)
        hidden = np.zeros((min(tokens, self.fields.visible_masks), tokens), dtype=bool)
        starts = word_starts(ids, self.store.continues)
        hidden[:, 1:-1] = word_masks(starts, len(ids), count, len(hidden), rng)
        picks = rng.integers(len(hidden), size=tokens)
        return Screened(ids, masked, np.packbits(hidden, axis=1, bitorder="little"), picks)

    def rebuild(self, examples: list[Screened]) -> Arrays:
        """The unmasked texts, and what each position sees of them.

        Returns:
            ``text`` [B, L], ``decoded`` and ``decoded_labels`` [N] int64, as of every decoder; ``hidden``
            [B, K, ceil(L / 8)] uint8 and ``picks`` [B, L] int64, as in an example.
        """
        text, mask = self.unmasked(examples)
        real = mask.copy()
        real[:, 0] = False
        real[np.arange(len(mask)), mask.sum(axis=1) - 1] = False  # [SEP]
        positions = np.flatnonzero(real)
        hidden = np.zeros((len(text), max(len(one.hidden) for one in examples), -(-text.shape[1] // 8)), dtype=np.uint8)
        picks = np.zeros(text.shape, dtype=np.int64)
        for row, one in enumerate(examples):
            hidden[row, : len(one.hidden), : one.hidden.shape[1]] = one.hidden
            picks[row, : len(one.picks)] = one.picks
        decoded = {"decoded": positions, "decoded_labels": text.ravel()[positions]}
        return {"text": text, **decoded, "hidden": hidden, "picks": picks}

    def predicted(self, length: int) -> float:
        """Every token but [CLS] and [SEP]."""
        return length - 2

    def decoder(self, shape: EncoderConfig) -> EnhancedDecoder:
        """A new decoder of one layer of the encoder's shape."""
        from encore.models.decoders import EnhancedDecoder

        return EnhancedDecoder(shape)

    def decode(self, encoder: Encoder, decoder: nn.Module, h: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """States [B, L, H] from h [B, H] and ``text`` [B, L], each position under its own mask (Eq. 8 and 9)."""
        from encore.models.decoders import each_its_own

        seen = each_its_own(batch["hidden"], batch["picks"], batch["mask"])
        positions = encoder.embeddings.position_embeddings.weight[: batch["text"].shape[1]]
        embedded = encoder.embeddings(batch["text"], None)
        states: Tensor = decoder(h, positions, embedded, seen, query_residual=self.fields.variant == "code")
        return states

    def decoder_flops(self, shape: EncoderConfig, batch: int, length: int) -> float:
        """Forward operations of the decoder's layer for ``batch`` texts of ``length`` tokens."""
        return layer_flops(shape, 1, batch, length)


OBJECTIVE = Enhanced

"""PROP and B-PROP as bi-encoders: a document prefers the better of two word sets, besides MLM.

The released code scores set and document by a cross-encoder; the bi-encoder form is the one that COSTA compares with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from encore.config.validation import MaskedShare, Positive
from encore.errors import EncoreError
from encore.models import flops, inputs
from encore.objectives.base import Arrays, ForwardOutput
from encore.objectives.parts.masked_texts import Masked, MaskedTexts, MaskingFields, choose_words, corrupt
from encore.objectives.parts.word_sets import PreparedPairs, SetFields

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor, nn

    from encore.data.tokens import TokenStore
    from encore.models.encoder import Encoder


class PreferenceFields(MaskingFields, SetFields):
    """Fields of PROP's and B-PROP's training."""

    packing: Literal["article", "section"] = Field(
        "article", description="Whether a text is packed from the sentences of an article or of a section."
    )
    mask_ratio: MaskedShare = Field(0.15, description="The share of a text's words that are masked.")
    whole_word: Literal[True] = Field(True, description="Whether words are masked as a whole.")
    max_masked: Positive = Field(60, description="The most word pieces of a text that are masked.")
    pairs: Positive = Field(5, description="The number of pairs of word sets sampled for a document in an epoch.")
    temperature: float = Field(1.0, gt=0, description="The number that the scores of word sets are divided by.")
    preference_weight: float = Field(1.0, ge=0, description="The weight of the preference loss; MLM has 1.")


class Preferring(NamedTuple):
    """An example: a document before and after masking, and word sets: the better and the worse of each pair."""

    ids: np.ndarray
    masked: Masked
    sets: list[np.ndarray]


F = TypeVar("F", bound=PreferenceFields)


class Preferences(MaskedTexts[F]):
    """Base of PROP and B-PROP, which differ in the sets that they prepare.

    ``loss = L_MLM + mean max(0, 1 - (p+ - p-))`` with ``p = softmax(<v(S+), v(d)>, <v(S-), v(d)>)``.

    One pass over the masked document gives its vector and its MLM loss; sets are read as queries. No other document's
    sets take part.
    """

    def __init__(self, fields: F, store: TokenStore, prepared: Path | None = None) -> None:
        super().__init__(fields, store, prepared)
        if prepared is None:
            raise EncoreError(f"objective {fields.objective} needs its word sets; prepare them first")
        self.sets = PreparedPairs(prepared)
        self.usable = self.sets.documents
        if fields.pairs > fields.stored_pairs:
            raise EncoreError(
                f"{fields.pairs} pairs of word sets cannot be drawn from {fields.stored_pairs}; "
                "raise `stored_pairs` or lower `pairs`"
            )

    def example(self, index: int, rng: np.random.Generator) -> Preferring:
        """A document, masked by whole words, and ``pairs`` of its stored pairs of word sets, drawn by ``rng``."""
        ids = self.chunks[self.usable[index]]
        masked = mask_words(ids, self.store, self.fields, rng)
        chosen = rng.choice(self.fields.stored_pairs, size=self.fields.pairs, replace=False)
        return Preferring(ids, masked, [part for pair in chosen for part in self.sets.pair(index, int(pair))])

    def collate(self, examples: list[Preferring]) -> Arrays:
        """The arrays of MLM, and ``set_ids``, ``set_mask`` [B * 2P, L']: a document's better and worse sets in turn."""
        sets = [part for example in examples for part in example.sets]
        ids, mask = inputs.pad(sets, self.fields.query_length, self.store.special)
        return {**super().collate(examples), "set_ids": ids, "set_mask": mask}

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The losses of MLM and of the preference (PROP, Eq. 9), and how often the better set wins, all scalars."""
        from encore.models.precision import at_least_float32
        from encore.training import losses

        hidden = encoder(batch["ids"], batch["mask"])
        mlm = self.masked_lm(encoder, heads, hidden, batch)
        documents = encoder.pool(hidden, batch["ids"], batch["mask"])
        sets = encoder.query_tower.embed(batch["set_ids"], batch["set_mask"]).unflatten(0, (len(documents), -1, 2))
        products = at_least_float32(sets) * at_least_float32(documents)[:, None, None]
        scores = products.sum(-1) / self.fields.temperature
        accuracy = (scores[..., 0] > scores[..., 1]).float().mean()
        return ForwardOutput({"mlm": mlm, "preference": losses.preference(scores), "accuracy": accuracy}, {})

    def loss_weights(self, progress: float) -> dict[str, float]:
        """MLM has weight 1, the preference ``preference_weight``."""
        return {"mlm": 1.0, "preference": self.fields.preference_weight}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """The operations of MLM, and of the sets and their scores."""
        sets = batch["set_ids"].shape
        forward = flops.forward(encoder.config, *sets) + flops.product(1, encoder.dimension, sets[0])
        return super().flops(encoder, batch) + flops.TRAINING * forward


def mask_words(ids: np.ndarray, store: TokenStore, fields: PreferenceFields, rng: np.random.Generator) -> Masked:
    """Mask whole words: as many pieces as ``mask_ratio`` of the words are, within bounds."""
    starts = store.word_starts(ids)
    count = min(fields.max_masked, max(1, round(fields.mask_ratio * len(starts))))
    return corrupt(ids, choose_words(starts, len(ids), count, rng), store.vocabulary, store.special.mask, rng)

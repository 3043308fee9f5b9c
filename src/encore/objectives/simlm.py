"""SimLM: replaced language modelling through a bottleneck (Wang et al., ACL 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from encore.config.validation import MaskedShare, Positive, Share
from encore.models import flops, inputs
from encore.objectives.base import Arrays, ForwardOutput
from encore.objectives.parts.decoding import layer_flops
from encore.objectives.parts.masked_texts import (
    Masked,
    MaskedTexts,
    MaskingFields,
    choose_words,
    count_to_mask,
    masked_lm,
    places,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.encoder import Encoder


class SimlmFields(MaskingFields):
    """Fields of SimLM."""

    mask_ratio: MaskedShare = Field(0.30, description="The share of a text's tokens that are replaced for the encoder.")
    whole_word: Literal[True] = Field(True, description="Words are replaced as a whole.")
    decoder_mask_ratio: Share = Field(
        0.50, description="The share that is replaced for the decoder: the encoder's, and others."
    )
    decoder_layers: Positive = Field(2, description="The number of layers of the decoder.")
    save_heads: tuple[str, ...] | None = Field(
        ("mlm", "decoder"), description="The modules that are saved: not the generator, which is the start itself."
    )


class Replaced(NamedTuple):
    """An example: the pieces of a text [n], and for encoder and decoder the places to fill [m] and chances [m]."""

    ids: np.ndarray
    places: tuple[np.ndarray, np.ndarray]
    chances: tuple[np.ndarray, np.ndarray]


class Simlm(MaskedTexts[SimlmFields]):
    """``L_enc + L_dec``, each the mean of ``-log p(t_i)`` over all pieces but [UNK] (Eq. 2 to 4).

    The encoder reads the text with some pieces replaced by what a generator draws for them, the decoder with more of
    them, and h in the place of [CLS]. The generator is frozen; here it is the model that the training starts from.
    """

    Fields = SimlmFields
    views = 2  # its generator, which does not learn, reads two

    def example(self, index: int, rng: np.random.Generator) -> Replaced:
        """A text, whole words of it for the encoder, and further ones for the decoder, each with a number in [0, 1)."""
        ids = self.chunks.read(self.usable[index], rng)
        starts, encoder = self.store.word_starts(ids), self.fields.mask_ratio
        further = max(0.0, (self.fields.decoder_mask_ratio - encoder) / (1 - encoder)) if encoder < 1 else 0.0
        first = choose_words(starts, len(ids), count_to_mask(len(ids), encoder), rng)
        second = choose_words(starts, len(ids), count_to_mask(len(ids), further), rng) if further else first
        chosen = (first, np.union1d(first, second))
        return Replaced(ids, chosen, (rng.random(len(chosen[0])), rng.random(len(chosen[1]))))

    def collate(self, examples: list[Any]) -> Arrays:
        """The texts, what is to be replaced in them, and what is predicted.

        Returns:
            ``ids``, ``mask`` [B, L]; ``decoded`` [N], positions of all pieces but [UNK] in the flattened [B * L], and
            ``decoded_labels`` [N], the pieces; ``replaced_0`` [M], positions for the encoder, and ``chance_0`` [M]
            float64; ``replaced_1`` and ``chance_1`` for the decoder.
        """
        ids, mask = inputs.pad([example.ids for example in examples], self.fields.length, self.store.special)
        known = [np.flatnonzero(text.ids != self.store.special.unk) for text in examples]
        every = [Masked(text.ids, at, text.ids[at].astype(np.int64)) for text, at in zip(examples, known, strict=True)]
        predicted = places(every, ids.shape[1])
        arrays = {"ids": ids, "mask": mask, "decoded": predicted["masked"], "decoded_labels": predicted["labels"]}
        for reader in (0, 1):
            chosen = [Masked(text.ids, text.places[reader], text.places[reader]) for text in examples]
            arrays[f"replaced_{reader}"] = places(chosen, ids.shape[1])["masked"]
            arrays[f"chance_{reader}"] = np.concatenate([text.chances[reader] for text in examples])
        return arrays

    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """The vocabulary head, the decoder and the generator; the last two are copies of the encoder's layers."""
        from encore.models.replacing import Generator, LastLayers

        heads = super().heads(encoder)
        heads["decoder"] = LastLayers(encoder, self.fields.decoder_layers)
        heads["generator"] = Generator(encoder)
        return heads

    def begin(self, heads: nn.ModuleDict) -> None:
        """Give the generator the vocabulary head of the start."""
        generator: Any = heads["generator"]
        generator.head.load_state_dict(heads["mlm"].state_dict())

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> ForwardOutput:
        """The losses of encoder and decoder, scalars: means over all pieces."""
        mask = batch["mask"]
        read = []
        for reader in (0, 1):
            places, chance = batch[f"replaced_{reader}"], batch[f"chance_{reader}"]
            masked = batch["ids"].flatten().index_fill(0, places, self.store.special.mask).view_as(batch["ids"])
            read.append(heads["generator"](masked, mask, places, chance))
        hidden = encoder(read[0], mask)
        h = encoder.pooled(hidden, read[0], mask)
        states = heads["decoder"](h, encoder.embeddings(read[1], None), mask)
        predicted = {"masked": batch["decoded"], "labels": batch["decoded_labels"]}
        terms = {"encoder": hidden, "decoder": states}
        return ForwardOutput({name: masked_lm(encoder, heads, each, predicted) for name, each in terms.items()}, {})

    def loss_weights(self, progress: float) -> dict[str, float]:
        """Both with weight 1."""
        return {"encoder": 1.0, "decoder": 1.0}

    def loss_denominators(self, batch: Arrays) -> dict[str, int]:
        """All pieces, for both."""
        return dict.fromkeys(("encoder", "decoder"), len(batch["decoded"]))

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """Encoder and decoder, each with the vocabulary head at all pieces; two forward passes of the generator."""
        shape, texts = encoder.config, batch["ids"].shape
        trained = flops.forward(shape, *texts) + layer_flops(shape, self.fields.decoder_layers, *texts)
        trained += 2 * flops.mlm_head(shape, len(batch["decoded"]))
        drawn = sum(len(batch[f"replaced_{reader}"]) for reader in (0, 1))
        return flops.TRAINING * trained + 2 * flops.forward(shape, *texts) + flops.mlm_head(shape, drawn)


OBJECTIVE = Simlm

"""Masked texts of the collection, the loss of their masked pieces, and bags of pieces.

Pieces are masked one by one or by whole words (Devlin et al. 2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from encore.config.validation import MaskedShare
from encore.models import flops, inputs
from encore.objectives.base import Arrays
from encore.objectives.parts.chunks import TextFields, Texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

    from encore.models.encoder import Encoder


class MaskingFields(TextFields):
    """Fields of every objective that masks."""

    mask_ratio: MaskedShare = Field(0.15, description="The share of a text's tokens that are masked.")
    whole_word: bool = Field(False, description="Whether words are masked as a whole.")


class MaskedText(NamedTuple):
    """An example: the pieces of a text, and the text after"""

    ids: np.ndarray
    masked: Masked


BITS = 32  # that a piece fits into, as tokens are stored; a text's number has the rest of 64
F = TypeVar("F", bound=MaskingFields)


class MaskedTexts(Texts[F]):
    """Base of the objectives that mask single texts."""

    def example(self, index: int, rng: np.random.Generator) -> Any:
        """A text before and after"""
        return self.text(index, rng)

    def text(self, index: int, rng: np.random.Generator) -> MaskedText:
        """A text, masked by ``rng``."""
        ids = self.chunks.read(self.usable[index], rng)
        count = count_to_mask(len(ids), self.fields.mask_ratio)
        if self.fields.whole_word:
            chosen = choose_words(self.store.word_starts(ids), len(ids), count, rng)
        else:
            chosen = choose_pieces(len(ids), count, rng)
        return MaskedText(ids, corrupt(ids, chosen, self.store.vocabulary, self.store.special.mask, rng))

    def collate(self, examples: list[Any]) -> Arrays:
        """The masked texts.

        Returns:
            ``ids``, ``mask`` [B, L]; ``masked`` [M] int64, masked positions in the flattened [B * L]; ``labels`` [M].
        """
        masked = [example.masked for example in examples]
        ids, mask = inputs.pad([text.ids for text in masked], self.fields.length, self.store.special)
        return {"ids": ids, "mask": mask, **places(masked, ids.shape[1])}

    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """The vocabulary head."""
        from torch import nn

        from encore.models.heads import MlmHead

        return nn.ModuleDict({"mlm": MlmHead(encoder.config)})

    def masked_lm(self, encoder: Encoder, heads: nn.ModuleDict, hidden: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """The mean loss of the masked pieces, a scalar, from states [B, L, H]."""
        return masked_lm(encoder, heads, hidden, batch)

    def loss_weights(self, progress: float) -> dict[str, float]:
        """MLM alone, with weight 1."""
        return {"mlm": 1.0}

    def loss_denominators(self, batch: Arrays) -> dict[str, int]:
        """Masked pieces M for MLM."""
        return {"mlm": len(batch["masked"])}

    def flops(self, encoder: Encoder, batch: Arrays) -> float:
        """Three forward passes' worth: the encoder over all positions, the vocabulary head over the masked ones."""
        head = flops.mlm_head(encoder.config, len(batch["masked"]))
        return flops.TRAINING * (self.encoded(encoder, batch) + head)


def masked_lm(encoder: Encoder, heads: nn.ModuleDict, hidden: Tensor, batch: dict[str, Tensor]) -> Tensor:
    """The mean loss of a batch's masked pieces, a scalar; the vocabulary head runs at their positions only.

    Args:
        hidden: [B, L, H], the encoder's states.
        batch: ``masked`` [M] int64, positions in the flattened [B * L]; ``labels`` [M] int64, the pieces there.
    """
    from encore.models.heads import at
    from encore.training import losses

    head: Any = heads["mlm"]
    states = head.transform(at(hidden, batch["masked"]))
    return losses.masked_lm(states, encoder.word_embeddings, head.bias, batch["labels"])


def bags(sequences: Sequence[np.ndarray], special: Sequence[int]) -> np.ndarray:
    """The bag of each text: its distinct pieces without special tokens, [B, K] int64, ascending, padded with -1."""
    texts = np.repeat(np.arange(len(sequences)), [len(ids) for ids in sequences])
    pieces = np.concatenate([*sequences, np.array([], dtype=np.int64)]).astype(np.int64)
    keys = np.sort((texts << BITS) | pieces)  # all texts at once
    keys = keys[np.diff(keys, prepend=-1) > 0]
    keys = keys[~np.isin(keys & ((1 << BITS) - 1), special)]
    sizes = np.bincount(keys >> BITS, minlength=len(sequences))
    bag = np.full((len(sequences), sizes.max(initial=0)), -1, dtype=np.int64)
    bag[np.arange(bag.shape[1]) < sizes[:, None]] = keys & ((1 << BITS) - 1)
    return bag


MASKED, REPLACED = 0.8, 0.1  # of the chosen pieces; the rest stay as they are


class Masked(NamedTuple):
    """A text after masking: its pieces [n], the chosen positions [m] ascending, and the original pieces [m]."""

    ids: np.ndarray
    positions: np.ndarray
    labels: np.ndarray


def choose_pieces(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """``count`` of ``n`` positions, all sets alike."""
    return np.sort(rng.choice(n, size=min(count, n), replace=False))


def choose_words(starts: np.ndarray, n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Whole words in random order until ``count`` pieces are chosen; a word that would overshoot is passed over.

    A text whose words are all longer than ``count`` gives its shortest word, so that something is always masked.
    """
    lengths = np.diff(np.append(starts, n))
    words, left = rng.permutation(len(starts)), count
    chosen = np.zeros(len(starts), dtype=bool)
    while len(words):  # each turn takes all words up to the first that overshoots; few turns are needed
        total = np.cumsum(lengths[words])
        fit = int(np.searchsorted(total, left, side="right"))
        chosen[words[:fit]] = True
        left -= int(total[fit - 1]) if fit else 0
        words = words[fit + 1 :]
        words = words[lengths[words] <= left]
    if n and not chosen.any():
        chosen[np.argmin(lengths)] = True
    return np.flatnonzero(np.repeat(chosen, lengths))


def count_to_mask(n: int, ratio: float) -> int:
    """Pieces to mask in a text of ``n`` pieces, at least one; the ratio counts [CLS] and [SEP] in, as BERT's does."""
    return max(1, round(ratio * (n + 2)))


def corrupt(ids: np.ndarray, positions: np.ndarray, vocabulary: int, mask: int, rng: np.random.Generator) -> Masked:
    """Put [MASK] at 80 % of the chosen positions, a piece drawn from the whole vocabulary at 10 %, and leave 10 %.

    Args:
        ids: [n] pieces without special tokens, which can therefore never be chosen.
        positions: [m] chosen positions.
        vocabulary: pieces to draw from.
        mask: id of [MASK].
    """
    fate = rng.random(len(positions))
    drawn = rng.integers(vocabulary, size=len(positions))
    labels = ids[positions].astype(np.int64)
    changed = ids.astype(np.int64)
    changed[positions] = np.where(fate < MASKED, mask, np.where(fate < MASKED + REPLACED, drawn, labels))
    return Masked(changed, positions, labels)


def places(texts: list[Masked], width: int) -> dict[str, np.ndarray]:
    """Places and original pieces of the masked pieces of padded texts.

    Args:
        texts: B masked texts, each behind a [CLS] when it is padded.
        width: L, tokens of the padded texts.

    Returns:
        ``masked`` [M] int64, positions in the flattened [B * L]; ``labels`` [M].
    """
    rows = [row * width + 1 + text.positions for row, text in enumerate(texts)]  # 1: [CLS]
    return {"masked": np.concatenate(rows), "labels": np.concatenate([text.labels for text in texts])}

"""B-PROP: PROP with word sets drawn from what BERT's [CLS] attends to, in contrast to the collection (SIGIR'21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from encore.config import Positive, Strict
from encore.errors import EncoreError
from encore.modeling.texts import pad
from encore.objectives.lexicon import Lexicon, Sums, summed
from encore.objectives.preference import PreferenceFields, Preferences
from encore.objectives.word_sets import Drawn, WordSets

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from encore.modeling.encoder import Encoder
    from encore.tokens import TokenStore

TOGETHER = 64  # texts that the parent model reads at once, those of like length


class ContrastFields(Strict):
    """What decides B-PROP's word sets beside the texts and the parent's weights."""

    skip_below: int = Field(200, ge=0, description="pieces below which a document is skipped")
    saturation: float = Field(0.01, gt=0, description="k of the saturated attention v / (v + k)")
    largest_contrast: float = Field(100.0, gt=0, description="at which the weight of a word is capped")
    set_temperature: float = Field(1.0, gt=0, description="of the softmax over the weights of a document's words")
    least_words: Positive = Field(10, description="different words that a document must have")
    drawn_words: Literal["letters", "content"] = Field(
        "letters", description="words of letters alone, as in the released code, or all but stop-words and punctuation"
    )
    word_attention: Literal["first", "sum"] = Field("first", description="to a word: of its first piece, or of all")


class BpropSets(ContrastFields, WordSets):
    """Sets drawn without replacement from the softmax of a document's contrastive weights; score: their sum."""

    name: ClassVar[str] = "bprop-sets"
    reads_weights: ClassVar[bool] = True

    def distribution(
        self, store: TokenStore, texts: list[np.ndarray], words: Lexicon, weights: Path | None
    ) -> ContrastiveDistribution:
        from encore.modeling import folder

        if weights is None:
            raise EncoreError("the word sets of bprop need a parent model; name its folder")
        attention = text_attention(folder.load(weights).eval(), texts, self.length)
        found = words.occurrences
        ends = np.cumsum([0, *map(len, texts)])
        places = ends[found.text] + found.place
        flat = np.concatenate(attention)
        values = flat[places] if self.word_attention == "first" else np.add.reduceat(flat, places)
        usable = words.alphabetic() if self.drawn_words == "letters" else words.content()
        return ContrastiveDistribution(self, summed(found, len(texts), len(words), values), usable)


class ContrastiveDistribution:
    """``softmax(min(-a_d(w) * log2 a_C(w), cap) / T)`` over a document's words of letters.

    ``a_d`` is the document's saturated attention, normalised to 1 over all its words; ``a_C`` the mean saturated
    attention of the collection's documents, normalised to 1.
    """

    def __init__(self, fields: ContrastFields, attention: Sums, usable: np.ndarray) -> None:
        self.fields = fields
        saturated = attention.values / (attention.values + fields.saturation)
        total = np.bincount(attention.words, weights=saturated, minlength=len(usable))
        owner = np.repeat(np.arange(len(attention.bounds) - 1), np.diff(attention.bounds))
        document = saturated / np.bincount(owner, weights=saturated)[owner]
        weights = contrastive(document, (total / total.sum())[attention.words], fields.largest_contrast)
        self.weights = Sums(attention.bounds, attention.words, weights)
        self.usable = usable

    def draw(self, document: int, sizes: np.ndarray, rng: np.random.Generator) -> Drawn | None:
        """Without replacement: the largest of the logits with Gumbel noise; no set is larger than the vocabulary."""
        words, weights = self.weights.of(document)
        usable = self.usable[words]
        words, weights = words[usable], weights[usable]
        if len(words) < self.fields.least_words:
            return None
        sizes = np.minimum(sizes, len(words))
        noisy = weights / self.fields.set_temperature + rng.gumbel(size=(len(sizes), len(words)))
        order = np.argsort(-noisy, axis=1)
        chosen = order[np.arange(len(words)) < sizes[:, None]]
        return Drawn(words[chosen], weights[chosen], sizes)


def contrastive(document: np.ndarray, collection: np.ndarray, largest: float) -> np.ndarray:
    """Weights of words: ``-a_d * log2 a_C``, capped; [n] each."""
    return np.minimum(-document * np.log2(collection), largest)


def text_attention(encoder: Encoder, sequences: list[np.ndarray], length: int) -> list[np.ndarray]:
    """Attention of [CLS] to each piece of each text."""
    import torch

    order = np.argsort([len(sequence) for sequence in sequences], kind="stable")
    found: list[np.ndarray] = [np.zeros(0)] * len(sequences)
    with torch.inference_mode():
        for first in range(0, len(order), TOGETHER):
            rows = order[first : first + TOGETHER]
            ids, mask = pad([sequences[row] for row in rows], length, encoder.shape)
            attention = cls_attention(encoder, torch.from_numpy(ids), torch.from_numpy(mask)).double().numpy()
            for row, values in zip(rows, attention, strict=True):
                found[row] = values[1 : 1 + len(sequences[row])]
    return found


def cls_attention(encoder: Encoder, ids: Tensor, mask: Tensor) -> Tensor:
    """Probabilities [B, L] with which [CLS] attends to each token in the last layer, averaged over the heads."""
    import torch

    visible = mask[:, None, None, :]
    states = encoder.embeddings(ids, None)
    layers: list[Any] = list(encoder.encoder.layer)
    for layer in layers[:-1]:
        states = layer(states, visible)
    attention = layers[-1].attention.self
    query = attention.query(states[:, :1]).unflatten(-1, (attention.heads, -1)).transpose(1, 2)
    key = attention.key(states).unflatten(-1, (attention.heads, -1)).transpose(1, 2)
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    probabilities = torch.softmax(scores.masked_fill(~visible, float("-inf")), dim=-1)
    return probabilities.mean(dim=1)[:, 0]


class BpropFields(ContrastFields, PreferenceFields):
    objective: Literal["bprop"]


class Bprop(Preferences[BpropFields]):
    """A set is better the larger the contrastive weights of its words are."""

    Fields = BpropFields
    Prepares = BpropSets


OBJECTIVE = Bprop

"""B-PROP: PROP with word sets drawn from what BERT's [CLS] attends to, in contrast to the collection (SIGIR'21)."""

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from encore.config.validation import Positive, Strict
from encore.errors import EncoreError
from encore.objectives.parts.attention import Attention
from encore.objectives.parts.chunks import ChunkBlock
from encore.objectives.parts.lexicon import Lexicon, Occurrences, Sums, Tally, summed
from encore.objectives.parts.preference import PreferenceFields, Preferences
from encore.objectives.parts.word_sets import Drawn, WordSets


class ContrastFields(Strict):
    """Fields that B-PROP's word sets depend on besides the texts and the parent's weights."""

    skip_below: int = Field(
        200, ge=0, description="The number of word pieces below which documents are skipped, by `skip_share`."
    )
    saturation: float = Field(0.01, gt=0, description="The constant k of the saturated attention v / (v + k).")
    largest_contrast: float = Field(100.0, gt=0, description="The largest weight of a word.")
    set_temperature: float = Field(
        1.0, gt=0, description="The temperature of the softmax over the weights of a document's words."
    )
    least_words: Positive = Field(10, description="The fewest different words of a document that is used.")
    drawn_words: Literal["letters", "content"] = Field(
        "letters", description="Which words are sampled: those of letters alone (released code), or all but stop-words."
    )
    word_attention: Literal["first", "sum"] = Field(
        "first", description="The attention of a word: that of its first piece, or the sum over its pieces."
    )


class BpropSets(ContrastFields, WordSets):
    """Sets drawn without replacement from the softmax of a document's contrastive weights; score: their sum."""

    name: ClassVar[str] = "bprop-sets"
    reads_attention: ClassVar[bool] = True

    def statistics(self, attention: Path | None) -> "Attended":
        """The collection's attention to its words."""
        if attention is None:
            raise EncoreError("the word sets of bprop need a model's attention to the texts; name its folder")
        return Attended(self, Attention(attention))


class Attended:
    """The mean saturated attention of a collection's documents to each word, ``a_C``, normalised to 1."""

    def __init__(self, fields: BpropSets, attention: Attention) -> None:
        self.fields, self._attention = fields, attention
        self._total = Tally()

    def counted(self, block: ChunkBlock, found: Occurrences) -> Sums:
        """The saturated attention of each text of a block to its words."""
        sums = self.sums(block, found)
        return sums._replace(values=saturated(sums.values, self.fields))

    def add(self, sums: Sums) -> None:
        """Add the saturated attention of a block's texts."""
        self._total.add(sums.words, sums.values)

    def close(self, words: Lexicon) -> None:
        """Normalise the attention to 1, float64 [words], and mark the words that are drawn, bool [words]."""
        total = self._total.of(words)
        self.mean = total / total.sum()
        self.usable = words.alphabetic() if self.fields.drawn_words == "letters" else words.content()

    def distribution(self, block: ChunkBlock, found: Occurrences) -> "ContrastiveDistribution":
        """The contrastive distribution of each text of a block."""
        return ContrastiveDistribution(self.fields, self.sums(block, found), self.mean, self.usable)

    def sums(self, block: ChunkBlock, found: Occurrences) -> Sums:
        """Each text's attention to its words: that of the first piece or the sum over pieces, float64."""
        ends = np.cumsum([0, *map(len, block.texts)])
        places = ends[found.text] + found.place
        flat = self._attention.of(block.number).astype(np.float64)
        if len(flat) != ends[-1]:
            raise EncoreError(
                f"{self._attention.path(block.number)} has {len(flat)} pieces, and the block's texts have "
                f"{ends[-1]}; name the attention to the texts of this token store"
            )
        values = flat[places] if self.fields.word_attention == "first" else np.add.reduceat(flat, places)
        return summed(found, len(block.texts), values)


class ContrastiveDistribution:
    """``softmax(min(-a_d(w) * log2 a_C(w), cap) / T)`` over a document's words of letters.

    ``a_d`` is the document's saturated attention, normalised to 1 over all its words.
    """

    def __init__(self, fields: ContrastFields, attention: Sums, mean: np.ndarray, usable: np.ndarray) -> None:
        self.fields = fields
        own = saturated(attention.values, fields)
        owner = np.repeat(np.arange(len(attention.bounds) - 1), np.diff(attention.bounds))
        document = own / np.bincount(owner, weights=own)[owner]
        weights = contrastive(document, mean[attention.words], fields.largest_contrast)
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


def saturated(attention: np.ndarray, fields: ContrastFields) -> np.ndarray:
    """``v / (v + k)`` of attention to words, [n]."""
    return attention / (attention + fields.saturation)


def contrastive(document: np.ndarray, collection: np.ndarray, largest: float) -> np.ndarray:
    """Weights of words: ``-a_d * log2 a_C``, capped; [n] each. A word that nothing attends to has none."""
    return np.minimum(-document * np.log2(np.maximum(collection, np.finfo(np.float64).tiny)), largest)


class BpropFields(ContrastFields, PreferenceFields):
    """Fields of B-PROP."""


class Bprop(Preferences[BpropFields]):
    """A set is better the larger the contrastive weights of its words are."""

    Fields = BpropFields
    Prepares = BpropSets
    impl = 2  # 2: the last layer computes [CLS] alone


OBJECTIVE = Bprop

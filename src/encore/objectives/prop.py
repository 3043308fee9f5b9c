"""PROP: word sets drawn from a document's language model, of which the likelier is preferred (WSDM'21, section 3)."""

from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from encore.config.validation import Positive, Strict
from encore.objectives.parts.chunks import ChunkBlock
from encore.objectives.parts.lexicon import Lexicon, Occurrences, Sums, Tally, summed
from encore.objectives.parts.preference import PreferenceFields, Preferences
from encore.objectives.parts.word_sets import Drawn, WordSets


class LanguageModelFields(Strict):
    """Fields that PROP's word sets depend on besides the texts."""

    least_count: Positive = Field(10, description="The fewest occurrences in the collection of a word that is sampled.")
    sampled_words: int = Field(
        500, ge=0, description="The number of words sampled from: the document's own, filled up with others."
    )
    subsampling: float = Field(1e-4, gt=0, description="The threshold t of word2vec's subsampling of frequent words.")
    smoothing: float | None = Field(None, gt=0, description="The Dirichlet prior mu; without it, the mean text length.")


class PropSets(WordSets, LanguageModelFields):
    """Sets drawn from the document's language model with Dirichlet smoothing; score: their log-likelihood."""

    name: ClassVar[str] = "prop-sets"

    def statistics(self, attention: Path | None) -> "Collected":
        """The counts of the collection's words; attention is not read."""
        return Collected(self)


class Collected:
    """Counts of a collection's words; words too rare in it are never drawn.

    A draw that falls on a frequent word is kept with word2vec's probability only, which is the same as drawing from the
    product of both.
    """

    def __init__(self, fields: LanguageModelFields) -> None:
        self.fields = fields
        self._occurrences, self._documents = Tally(), Tally()
        self._texts = 0

    def counted(self, block: ChunkBlock, found: Occurrences) -> Sums:
        """Occurrences of each word in each text of a block."""
        return summed(found, len(block.texts), np.ones(len(found.word)))

    def add(self, sums: Sums) -> None:
        """Add the words of a block's texts, and the texts that hold each."""
        self._occurrences.add(sums.words, sums.values)
        self._documents.add(sums.words, np.ones(len(sums.words)))
        self._texts += len(sums.bounds) - 1

    def close(self, words: Lexicon) -> None:
        """Make the background distribution, the probabilities of subsampling and mu, over numbered words."""
        self.content = words.content()
        occurrences, documents = (
            np.where(self.content, t.of(words), 0.0) for t in (self._occurrences, self._documents)
        )
        self.background, self.kept = collection_model(occurrences, documents, self.fields)
        self.mu = self.fields.smoothing or max(float(occurrences.sum() / self._texts), 1.0)
        self.cumulated = np.cumsum(self.background)

    def distribution(self, block: ChunkBlock, found: Occurrences) -> "LanguageModel":
        """The language model of each text of a block."""
        return LanguageModel(self, found, len(block.texts))


class LanguageModel:
    """``P(w | d) = (tf + mu * df(w) / sum df) / (|d| + mu)`` over content words, |d| in such words."""

    def __init__(self, collected: Collected, found: Occurrences, texts: int) -> None:
        self.collected = collected
        values = collected.content[found.word].astype(np.float64)
        self.counts: Sums = summed(found, texts, values)
        self.lengths = np.bincount(found.text, weights=values, minlength=texts)

    def draw(self, document: int, sizes: np.ndarray, rng: np.random.Generator) -> Drawn | None:
        """Sets of ``sizes`` [S] words, with replacement, scored by log-likelihood; None where no word is usable."""
        background = self.collected.background
        words, counts = self.counts.of(document)
        usable = (counts > 0) & (background[words] > 0)
        words, counts = words[usable], counts[usable]
        if len(words) == 0:
            return None
        others = self._others(words, rng)
        words, counts = np.concatenate([words, others]), np.concatenate([counts, np.zeros(len(others))])
        likelihood = smoothed(counts, background[words], self.lengths[document], self.collected.mu)
        cumulated = np.cumsum(likelihood * self.collected.kept[words])
        chosen = np.searchsorted(cumulated, rng.random(sizes.sum()) * cumulated[-1], side="right")
        return Drawn(words[chosen], np.log(likelihood[chosen]), sizes)

    def _others(self, own: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Words that the document lacks, by document frequency: what fills up, or 100 more than its own words."""
        room = self.collected.fields.sampled_words - len(own)
        count = room if room > 0 else len(own) + 100
        cumulated = self.collected.cumulated
        drawn = np.sort(np.searchsorted(cumulated, rng.random(count) * cumulated[-1], side="right"))
        first = np.append(True, drawn[1:] != drawn[:-1])
        return drawn[first & (own[np.searchsorted(own[:-1], drawn)] != drawn)]


def smoothed(counts: np.ndarray, background: np.ndarray, length: float, mu: float) -> np.ndarray:
    """Likelihood of words in a document's language model with Dirichlet smoothing: ``(tf + mu * p) / (|d| + mu)``.

    Args:
        counts, background: [n], tf and p, of n words in the document and in the collection.
        length: the document's content words.
        mu: the prior, in words.

    Returns:
        float64 [n].
    """
    likelihood: np.ndarray = (counts + mu * background) / (length + mu)
    return likelihood


def collection_model(
    occurrences: np.ndarray, documents: np.ndarray, fields: LanguageModelFields
) -> tuple[np.ndarray, np.ndarray]:
    """df / sum of all df, 0 for words that are too rare; and word2vec's probability to keep a word; [words] each."""
    background = np.where(occurrences >= fields.least_count, documents / max(documents.sum(), 1), 0.0)
    ratio = fields.subsampling * max(occurrences.sum(), 1.0) / np.maximum(occurrences, 1.0)
    return background, np.minimum(np.sqrt(ratio) + ratio, 1.0)


class PropFields(PreferenceFields, LanguageModelFields):
    """Fields of PROP."""


class Prop(Preferences[PropFields]):
    """A set is better the likelier its words are under the document's language model."""

    Fields = PropFields
    Prepares = PropSets
    impl = 2  # 2: the last layer computes [CLS] alone


OBJECTIVE = Prop

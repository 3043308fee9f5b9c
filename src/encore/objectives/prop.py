"""PROP: word sets drawn from a document's language model, of which the likelier is preferred (WSDM'21, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from encore.config import Positive, Strict
from encore.objectives.lexicon import Lexicon, Sums, summed
from encore.objectives.preference import PreferenceFields, Preferences
from encore.objectives.word_sets import Drawn, WordSets

if TYPE_CHECKING:
    from pathlib import Path

    from encore.tokens import TokenStore


class LanguageModelFields(Strict):
    """What decides PROP's word sets beside the texts."""

    least_count: Positive = Field(10, description="times that a word must occur in the collection to be drawn")
    sampled_words: int = Field(500, ge=0, description="words drawn from: the document's own, filled up with others")
    subsampling: float = Field(1e-4, gt=0, description="t of word2vec's subsampling of frequent words")
    smoothing: float | None = Field(None, gt=0, description="mu of the Dirichlet prior; without, the mean text length")


class PropSets(WordSets, LanguageModelFields):
    """Sets drawn from the document's language model with Dirichlet smoothing; score: their log-likelihood."""

    name: ClassVar[str] = "prop-sets"

    def distribution(
        self, store: TokenStore, texts: list[np.ndarray], words: Lexicon, weights: Path | None
    ) -> LanguageModel:
        return LanguageModel(self, words, len(texts))


class LanguageModel:
    """``P(w | d) = (tf + mu * df(w) / sum df) / (|d| + mu)`` over content words, |d| in such words.

    Words too rare in the collection are left out. A draw that falls on a frequent word is kept with word2vec's
    probability only, which is the same as drawing from the product of both.
    """

    def __init__(self, fields: LanguageModelFields, words: Lexicon, texts: int) -> None:
        self.fields = fields
        found, content = words.occurrences, words.content()
        values = content[found.word].astype(np.float64)
        self.counts: Sums = summed(found, texts, len(words), values)
        self.background, self.kept = collection_model(self.counts, len(words), fields)
        self.lengths = np.bincount(found.text, weights=values, minlength=texts)
        self.mu = fields.smoothing or max(float(self.lengths.mean()), 1.0)
        self._cumulated = np.cumsum(self.background)

    def draw(self, document: int, sizes: np.ndarray, rng: np.random.Generator) -> Drawn | None:
        words, counts = self.counts.of(document)
        usable = (counts > 0) & (self.background[words] > 0)
        words, counts = words[usable], counts[usable]
        if len(words) == 0:
            return None
        others = self._others(words, rng)
        words, counts = np.concatenate([words, others]), np.concatenate([counts, np.zeros(len(others))])
        likelihood = smoothed(counts, self.background[words], self.lengths[document], self.mu)
        cumulated = np.cumsum(likelihood * self.kept[words])
        chosen = np.searchsorted(cumulated, rng.random(sizes.sum()) * cumulated[-1], side="right")
        return Drawn(words[chosen], np.log(likelihood[chosen]), sizes)

    def _others(self, own: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Words that the document lacks, by document frequency: what fills up, or 100 more than its own words."""
        room = self.fields.sampled_words - len(own)
        count = room if room > 0 else len(own) + 100
        drawn = np.sort(np.searchsorted(self._cumulated, rng.random(count) * self._cumulated[-1], side="right"))
        first = np.append(True, drawn[1:] != drawn[:-1])
        return drawn[first & (own[np.searchsorted(own[:-1], drawn)] != drawn)]


def smoothed(counts: np.ndarray, background: np.ndarray, length: float, mu: float) -> np.ndarray:
    """Likelihood of words in a document's language model with Dirichlet smoothing."""
    likelihood: np.ndarray = (counts + mu * background) / (length + mu)
    return likelihood


def collection_model(found: Sums, words: int, fields: LanguageModelFields) -> tuple[np.ndarray, np.ndarray]:
    """df / sum of all df, 0 for words that are too rare; and word2vec's probability to keep a word; [words] each."""
    present = found.values > 0
    documents = np.bincount(found.words[present], minlength=words)
    occurrences = np.bincount(found.words, weights=found.values, minlength=words)
    background = np.where(occurrences >= fields.least_count, documents / max(documents.sum(), 1), 0.0)
    ratio = fields.subsampling * max(occurrences.sum(), 1.0) / np.maximum(occurrences, 1.0)
    return background, np.minimum(np.sqrt(ratio) + ratio, 1.0)


class PropFields(PreferenceFields, LanguageModelFields):
    objective: Literal["prop"]


class Prop(Preferences[PropFields]):
    """A set is better the likelier its words are under the document's language model."""

    Fields = PropFields
    Prepares = PropSets


OBJECTIVE = Prop

"""Inverse cloze task: a sentence finds the rest of its passage (Lee et al. 2019; Chang et al. 2020, section 3)."""

import numpy as np
from pydantic import Field

from encore.config.validation import Share
from encore.objectives.parts.pairs import PairChoice, PairFields, Pairs


class IctFields(PairFields):
    """Fields of the inverse cloze task (Lee et al. 2019; Chang et al. 2020)."""

    keep_sentence: Share = Field(
        0.0, description="The share of the documents that keep the query's sentence; 0.1 in ORQA."
    )


class Ict(Pairs[IctFields]):
    """Query: a random sentence of a chunk. Document: the other sentences, in their order."""

    Fields = IctFields
    pairs_sentences = True
    needed = "texts of two or more sentences"
    impl = 3  # 2: the last layer computes [CLS] alone; 3: batches are random samples

    def find_pairs(self) -> np.ndarray:
        """The chunks of two sentences or more."""
        return np.flatnonzero(self.chunks.sizes >= 2)

    def choose(self, index: int, rng: np.random.Generator) -> PairChoice:
        """A random sentence of a chunk, and the chunk, without it unless ``keep_sentence`` decides otherwise."""
        chunk = int(self.pairs[index])
        sentences = self.chunks.filled(*self.chunks.bounds[chunk])
        sentence = int(sentences[rng.integers(len(sentences))])
        return PairChoice(sentence, chunk, removed=rng.random() >= self.fields.keep_sentence)


OBJECTIVE = Ict

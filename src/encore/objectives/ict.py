"""Inverse cloze task: a sentence finds the rest of its passage (Lee et al. 2019; Chang et al. 2020, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from encore.config.strict import Share
from encore.errors import EncoreError
from encore.objectives.parts.pairs import PairChoice, PairFields, Pairs

if TYPE_CHECKING:
    from pathlib import Path

    from encore.data.tokens import TokenStore
    from encore.objectives.parts.pairs import Passages


class IctFields(PairFields):
    """Fields of the inverse cloze task (Lee et al. 2019; Chang et al. 2020)."""

    objective: Literal["ict"]
    keep_sentence: Share = Field(
        0.0, description="The share of the documents that keep the query's sentence; 0.1 in ORQA."
    )


class Ict(Pairs[IctFields]):
    """Query: a random sentence of a chunk. Document: the other sentences, in their order."""

    Fields = IctFields
    pairs_sentences = True
    impl = 2  # 2: the last layer computes [CLS] alone

    def __init__(
        self, fields: IctFields, store: TokenStore, prepared: Path | None = None, passages: Passages | None = None
    ) -> None:
        super().__init__(fields, store, prepared, passages)
        self.usable = np.flatnonzero(self.chunks.sizes >= 2)
        if len(self.usable) == 0:
            raise EncoreError(
                "objective ict needs texts of two or more sentences, and the collection has none; take other texts"
            )

    def __len__(self) -> int:
        return len(self.usable)

    def choose(self, index: int, rng: np.random.Generator) -> PairChoice:
        """A random sentence of a chunk, and the chunk, without it unless ``keep_sentence`` decides otherwise."""
        chunk = int(self.usable[index])
        sentences = self.chunks.filled(*self.chunks.bounds[chunk])
        sentence = int(sentences[rng.integers(len(sentences))])
        return PairChoice(sentence, chunk, removed=rng.random() >= self.fields.keep_sentence)


OBJECTIVE = Ict

"""Inverse cloze task: a sentence finds the rest of its passage (Lee et al. 2019; Chang et al. 2020, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from encore.config.strict import Share
from encore.errors import EncoreError
from encore.objectives.parts.pairs import PairFields, Pairs, TextPair

if TYPE_CHECKING:
    from pathlib import Path

    from encore.data.tokens import TokenStore
    from encore.objectives.parts.passages import Passages


class IctFields(PairFields):
    """Fields of the inverse cloze task (Lee et al. 2019; Chang et al. 2020)."""

    objective: Literal["ict"]
    keep_sentence: Share = Field(
        0.0, description="The share of the documents that keep the query's sentence; 0.1 in ORQA."
    )


class Ict(Pairs[IctFields]):
    """Query: a random sentence of a chunk. Document: the other sentences, in their order."""

    Fields = IctFields
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

    def example(self, index: int, rng: np.random.Generator) -> TextPair:
        """A random sentence of a chunk, and the chunk, without it unless ``keep_sentence`` decides otherwise."""
        chunk = int(self.usable[index])
        sentences = self.chunks.parts(chunk)
        drawn = int(rng.integers(len(sentences)))
        kept = rng.random() < self.fields.keep_sentence
        rest = sentences if kept else sentences[:drawn] + sentences[drawn + 1 :]
        document = self.passages.document(int(self.chunks.section[chunk]), np.concatenate(rest))
        return self.pair(sentences[drawn], document, rng)


OBJECTIVE = Ict

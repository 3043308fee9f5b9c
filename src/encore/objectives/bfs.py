"""Body first selection: a sentence of an article's first section finds a passage of its body (Chang et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from encore.errors import EncoreError
from encore.objectives.parts.pairs import PairChoice, PairFields, Pairs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from encore.data.tokens import TokenStore
    from encore.objectives.parts.pairs import Passages


class BfsFields(PairFields):
    """Fields of body first selection (Chang et al. 2020)."""

    objective: Literal["bfs"]


class Bfs(Pairs[BfsFields]):
    """Query: a random sentence of the article's first section. Document: a chunk of another section of that article.

    An epoch takes each such chunk once. The first section is no document: the aim is to look beyond one paragraph.
    """

    Fields = BfsFields
    reads_articles = True
    impl = 2  # 2: the last layer computes [CLS] alone

    def __init__(
        self, fields: BfsFields, store: TokenStore, prepared: Path | None = None, passages: Passages | None = None
    ) -> None:
        super().__init__(fields, store, prepared, passages)
        first = store.articles[:-1][self.passages.article[self.chunks.section]]  # of each chunk's article
        self.usable = np.flatnonzero(self.passages.filled[first] & (first != self.chunks.section))
        self.first = first
        if len(self.usable) == 0:
            raise EncoreError("objective bfs needs articles with a first section and others; this collection has none")

    def __len__(self) -> int:
        return len(self.usable)

    def choose(self, index: int, rng: np.random.Generator) -> PairChoice:
        """A random sentence of an article's first section, and a chunk of another section of the article."""
        chunk = int(self.usable[index])
        return PairChoice(self.passages.sentence(int(self.first[chunk]), rng), chunk)

    def sizes(self, indices: np.ndarray, chance: Callable[[int], np.random.Generator]) -> np.ndarray:
        """Word pieces of each document, in which chance has no part."""
        return self.passages.lengths(self.usable[indices])


OBJECTIVE = Bfs

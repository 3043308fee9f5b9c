"""Body first selection: a sentence of an article's first section finds a passage of its body (Chang et al. 2020)."""

from collections.abc import Callable

import numpy as np

from encore.objectives.parts.pairs import PairChoice, PairFields, Pairs


class Bfs(Pairs[PairFields]):
    """Query: a random sentence of the article's first section. Document: a chunk of another section of that article.

    An epoch takes each such chunk once. The first section is not a document: the aim is to look beyond one paragraph.
    """

    Fields = PairFields
    reads_articles = True
    needed = "articles with a first section and others"
    impl = 3  # 2: the last layer computes [CLS] alone; 3: batches are random samples

    def find_pairs(self) -> np.ndarray:
        """The chunks of sections but the first, of articles whose first section has text."""
        self.first = self.store.articles[:-1][self.passages.article[self.chunks.section]]
        return np.flatnonzero(self.passages.filled[self.first] & (self.first != self.chunks.section))

    def choose(self, index: int, rng: np.random.Generator) -> PairChoice:
        """A random sentence of an article's first section, and a chunk of another section of the article."""
        chunk = int(self.pairs[index])
        return PairChoice(self.passages.sentence(int(self.first[chunk]), rng), chunk)

    def sizes(self, indices: np.ndarray, chance: Callable[[int], np.random.Generator]) -> np.ndarray:
        """Word pieces of each document; chance has no part in them."""
        return self.passages.lengths(self.pairs[indices])


OBJECTIVE = Bfs

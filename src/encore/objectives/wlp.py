"""Wiki link prediction: a sentence of page A finds a passage of page B that links to A (Chang et al. 2020)."""

import numpy as np

from encore.objectives.parts.pairs import PairChoice, PairFields, Pairs


class Wlp(Pairs[PairFields]):
    """Query: a random sentence of the section that is linked to. Document: a chunk of the section that holds the link.

    A link of Wikipedia leads to a page's first section, as in the paper; in the shipped collection it may name another.
    An epoch takes each link once; of a long linking section a chunk is drawn. Links of a section to itself are left
    out.
    """

    Fields = PairFields
    reads_articles = True
    needed = "links between sections of articles"
    impl = 3  # 2: the last layer computes [CLS] alone; 3: batches are random samples

    def find_pairs(self) -> np.ndarray:
        """The links between different sections with text: the linking one and the linked one, [n, 2]."""
        linking, linked = self.store.links.T
        filled = self.passages.filled
        return np.asarray(self.store.links[filled[linking] & filled[linked] & (linking != linked)])

    def choose(self, index: int, rng: np.random.Generator) -> PairChoice:
        """A random sentence of the section that a link leads to, and a chunk of the section that holds the link."""
        linking, linked = self.pairs[index].tolist()
        sentence, chunks = self.passages.sentence(linked, rng), self.chunks.of_section(linking)
        return PairChoice(sentence, chunks[int(rng.integers(len(chunks)))])


OBJECTIVE = Wlp

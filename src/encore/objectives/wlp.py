"""Wiki link prediction: a sentence of page A finds a passage of page B that links to A (Chang et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from encore.errors import EncoreError
from encore.objectives.parts.pairs import PairChoice, PairFields, Pairs

if TYPE_CHECKING:
    from pathlib import Path

    from encore.data.tokens import TokenStore
    from encore.objectives.parts.pairs import Passages


class WlpFields(PairFields):
    """Fields of wiki link prediction (Chang et al. 2020)."""

    objective: Literal["wlp"]


class Wlp(Pairs[WlpFields]):
    """Query: a random sentence of the section that is linked to. Document: a chunk of the section that holds the link.

    An epoch takes each link once; of a long linking section a chunk is drawn. Links of a section to itself are none.
    """

    Fields = WlpFields
    reads_articles = True
    impl = 2  # 2: the last layer computes [CLS] alone

    def __init__(
        self, fields: WlpFields, store: TokenStore, prepared: Path | None = None, passages: Passages | None = None
    ) -> None:
        super().__init__(fields, store, prepared, passages)
        filled, (linking, linked) = self.passages.filled, store.links.T
        self.links = store.links[filled[linking] & filled[linked] & (linking != linked)]
        if len(self.links) == 0:
            raise EncoreError("objective wlp needs links between sections of articles; this collection has none")

    def __len__(self) -> int:
        return len(self.links)

    def choose(self, index: int, rng: np.random.Generator) -> PairChoice:
        """A random sentence of the section that a link leads to, and a chunk of the section that holds the link."""
        linking, linked = self.links[index].tolist()
        sentence, chunks = self.passages.sentence(linked, rng), self.chunks.of_section(linking)
        return PairChoice(sentence, chunks[int(rng.integers(len(chunks)))])


OBJECTIVE = Wlp

"""Wiki link prediction: a sentence of page A finds a passage of page B that links to A (Chang et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from encore.errors import EncoreError
from encore.objectives.pairs import Pair, PairFields, Pairs

if TYPE_CHECKING:
    from pathlib import Path

    from encore.tokens import TokenStore


class WlpFields(PairFields):
    objective: Literal["wlp"]


class Wlp(Pairs[WlpFields]):
    """Query: a random sentence of the section that is linked to. Document: a chunk of the section that holds the link.

    An epoch takes each link once; of a long linking section a chunk is drawn. Links of a section to itself are none.
    """

    Fields = WlpFields

    def __init__(self, fields: WlpFields, store: TokenStore, prepared: Path | None = None) -> None:
        super().__init__(fields, store, prepared)
        linking, linked = store.links.T
        self.links = store.links[self.filled[linking] & self.filled[linked] & (linking != linked)]
        if len(self.links) == 0:
            raise EncoreError("objective wlp needs links between sections of articles; this collection has none")

    def __len__(self) -> int:
        return len(self.links)

    def example(self, index: int, rng: np.random.Generator) -> Pair:
        linking, linked = self.links[index].tolist()
        query = self.query(linked, rng)
        passages = self.chunks.of_section(linking)
        return Pair(query, self.document(linking, self.chunks[passages[int(rng.integers(len(passages)))]]))


OBJECTIVE = Wlp

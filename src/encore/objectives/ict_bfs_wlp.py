"""The three tasks of the two-tower paper together, each a third of the pairs (Chang et al. 2020, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from encore.objectives.bfs import Bfs
from encore.objectives.ict import Ict, IctFields
from encore.objectives.pairs import Pair, Pairs
from encore.objectives.wlp import Wlp

if TYPE_CHECKING:
    from pathlib import Path

    from encore.tokens import TokenStore


class MixtureFields(IctFields):
    objective: Literal["ict_bfs_wlp"]  # type: ignore[assignment]


class Mixture(Pairs[MixtureFields]):
    """The task is drawn first, uniformly, then one of its pairs: tasks do not count by how many pairs they have."""

    Fields = MixtureFields

    def __init__(self, fields: MixtureFields, store: TokenStore, prepared: Path | None = None) -> None:
        super().__init__(fields, store, prepared)
        tasks: tuple[type[Any], ...] = (Ict, Bfs, Wlp)
        self.tasks: list[Pairs] = [task(fields, store, passages=self.passages) for task in tasks]

    def __len__(self) -> int:
        return sum(map(len, self.tasks))

    def example(self, index: int, rng: np.random.Generator) -> Pair:
        task = self.tasks[int(rng.integers(len(self.tasks)))]
        pair: Pair = task.example(int(rng.integers(len(task))), rng)
        return pair


OBJECTIVE = Mixture

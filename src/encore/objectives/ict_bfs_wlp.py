"""The three tasks of the two-tower paper together, each a third of the pairs (Chang et al. 2020, section 3)."""

from typing import Any

import numpy as np

from encore.objectives.bfs import Bfs
from encore.objectives.ict import Ict, IctFields
from encore.objectives.parts.pairs import PairChoice, Pairs
from encore.objectives.wlp import Wlp


class Mixture(Pairs[IctFields]):
    """Tasks do not count by how many pairs they have: an epoch takes as many of each as the smallest task has.

    No two examples are drawn from the same pairs, so that those held out are never trained on.
    """

    Fields = IctFields
    reads_articles = True
    impl = 4  # 2: examples do not share pairs; 3: the last layer computes [CLS] alone; 4: batches are random samples

    def find_pairs(self) -> np.ndarray:
        """The tasks, whose examples come in turn."""
        tasks: tuple[type[Any], ...] = (Ict, Bfs, Wlp)
        self.tasks: list[Pairs] = [task(self.fields, self.store, passages=self.passages) for task in tasks]
        self._smallest = min(map(len, self.tasks))
        return np.arange(len(self.tasks))

    def __len__(self) -> int:
        return len(self.tasks) * self._smallest

    def choose(self, index: int, rng: np.random.Generator) -> PairChoice:
        """A pair of one of the three tasks, in turn, drawn from the pairs that belong to this example."""
        place, which = divmod(index, len(self.tasks))
        task = self.tasks[which]
        first, end = (len(task) * border // self._smallest for border in (place, place + 1))
        return task.choose(int(rng.integers(first, end)), rng)


OBJECTIVE = Mixture

"""What the training loop asks of whatever is learned: pre-training objectives and fine-tuning alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.models.encoder import Encoder

Arrays = dict[str, np.ndarray]


class Pass(NamedTuple):
    """What a pass over some examples of a batch gives.

    ``means``: scalar terms by name, each a mean over what these examples bring (``Task.counts`` says how much that is).
    ``rows``: tensors by name with a row an example, in one order; ``contrast`` is given those of the whole batch, from
    all parts and processes. A name's rows have the same shape in every part, so what is ragged is padded to a constant.
    """

    means: dict[str, Tensor]
    rows: dict[str, Tensor]


class Task(ABC):
    """Examples, batches of them, and the loss of a batch.

    The loss is a weighted sum of named terms. Terms that examples have each for itself come from ``forward``; terms
    that need the whole batch, such as a contrast within it, from ``contrast``. The training loop can therefore work
    through a batch in parts, and on several processes, and end with the gradients of the whole.
    """

    @abstractmethod
    def __len__(self) -> int:
        """Examples in one epoch."""

    def indices(self) -> np.ndarray:
        """The numbers of the examples in ascending order, as ``example`` takes them: all, unless this is a part."""
        return np.arange(len(self))

    @abstractmethod
    def example(self, index: int, rng: np.random.Generator) -> Any:
        """One example; all chance comes from ``rng``, which depends on (seed, epoch, index) alone."""

    def size(self, example: Any) -> int:
        """Tokens of an example's longest text: examples of like size share a batch, so that little is padding."""
        return 0

    @abstractmethod
    def collate(self, examples: list[Any]) -> Arrays:
        """Pad examples to the longest of them: the arrays of a batch."""

    @abstractmethod
    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> Pass:
        """Run the models on a batch, or on a part of one; ``batch`` holds what ``collate`` made of it."""

    def contrast(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        """Scalar terms by name from the rows of a whole batch; none by default."""
        return {}

    @abstractmethod
    def weights(self, progress: float) -> dict[str, float]:
        """How much each term counts in the loss; the others are logged only.

        Args:
            progress: the share of the training that is behind, from 0 to 1.
        """

    def counts(self, batch: Arrays) -> dict[str, int]:
        """How many things a mean of ``forward`` is over, where these are not the examples: masked positions."""
        return {}

    @abstractmethod
    def operations(self, encoder: Encoder, batch: Arrays) -> float:
        """Floating-point operations of one training step on this batch (forward and backward), heads included."""

    def loss(
        self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor], progress: float = 0.0
    ) -> dict[str, Tensor]:
        """The terms of a whole batch by name, and under ``"loss"`` the sum that is minimised."""
        means, rows = self.forward(encoder, heads, batch)
        terms = means | self.contrast(rows)
        return {"loss": weighted(terms, self.weights(progress)), **terms}


def weighted(terms: dict[str, Tensor], weights: dict[str, float]) -> Tensor:
    """The weighted sum of terms, in the order of the weights."""
    total: Tensor = sum(weight * terms[name] for name, weight in weights.items() if name in terms)  # type: ignore[assignment]
    return total


class Subset(Task):
    """Some examples of a task. They keep their numbers, and with these the chance that belongs to them."""

    def __init__(self, task: Task, indices: np.ndarray) -> None:
        self.task = task
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def indices(self) -> np.ndarray:
        return self._indices

    def example(self, index: int, rng: np.random.Generator) -> Any:
        return self.task.example(index, rng)

    def size(self, example: Any) -> int:
        return self.task.size(example)

    def collate(self, examples: list[Any]) -> Arrays:
        return self.task.collate(examples)

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> Pass:
        return self.task.forward(encoder, heads, batch)

    def contrast(self, rows: dict[str, Tensor]) -> dict[str, Tensor]:
        return self.task.contrast(rows)

    def weights(self, progress: float) -> dict[str, float]:
        return self.task.weights(progress)

    def counts(self, batch: Arrays) -> dict[str, int]:
        return self.task.counts(batch)

    def operations(self, encoder: Encoder, batch: Arrays) -> float:
        return self.task.operations(encoder, batch)

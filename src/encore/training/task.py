"""What the training loop asks of whatever is learned: pre-training objectives and fine-tuning alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.modeling.encoder import Encoder

Arrays = dict[str, np.ndarray]


class Task(ABC):
    """Examples, batches of them, and the loss of a batch."""

    @abstractmethod
    def __len__(self) -> int:
        """Examples in one epoch."""

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
    def loss(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Scalar terms by name; ``"loss"`` is the one that is minimised, the others are logged.

        ``batch`` holds what ``collate`` made and ``"progress"``, the share of the training that is behind, from 0 to 1.
        """

    @abstractmethod
    def operations(self, encoder: Encoder, batch: Arrays) -> float:
        """Floating-point operations of one training step on this batch (forward and backward), heads included."""

"""What an objective is: how a batch is made from token sequences or articles, and what the loss of a batch is.

Objectives are imported while the workflow is parsed (their fields are part of the configuration), so their files import
torch inside ``heads`` and ``loss`` only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from encore.config import PretrainStep

if TYPE_CHECKING:
    from torch import Tensor, nn

    from encore.modeling.encoder import Encoder
    from encore.tokens import TokenStore

F = TypeVar("F", bound=PretrainStep)
Arrays = dict[str, np.ndarray]


class Objective(ABC, Generic[F]):
    """One pre-training objective on one token store.

    Subclasses set ``Fields`` (their configuration) and ``impl`` (bumped when the numbers that they make change).
    """

    Fields: ClassVar[type[PretrainStep]]
    impl: ClassVar[int] = 1

    def __init__(self, fields: F, store: TokenStore) -> None:
        self.fields = fields
        self.store = store

    @abstractmethod
    def __len__(self) -> int:
        """Examples in one epoch.

        Raises:
            EncoreError: the store lacks what the objective needs (sections, links), or holds no usable text.
        """

    @abstractmethod
    def example(self, index: int, rng: np.random.Generator) -> Any:
        """One example; all chance comes from ``rng``, which depends on (seed, epoch, index) alone."""

    @abstractmethod
    def collate(self, examples: list[Any]) -> Arrays:
        """Pad examples into the arrays of a batch."""

    @abstractmethod
    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """The modules that the objective trains beside the encoder; saved in ``heads.safetensors``."""

    @abstractmethod
    def loss(self, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        """Scalar terms by name; ``"loss"`` is the one that is minimised, the others are logged."""

    @abstractmethod
    def operations(self, encoder: Encoder, batch: Arrays) -> float:
        """Floating-point operations of one training step on this batch (forward and backward), heads included."""

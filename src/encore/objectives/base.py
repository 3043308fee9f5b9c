"""What an objective is: a training task made from tokens or articles, and the modules trained beside the encoder.

Objectives are imported while the workflow is parsed (their fields are part of the configuration), so their files import
torch inside methods only.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from encore.config import PretrainStep
from encore.training.task import Arrays, Pass, Task

if TYPE_CHECKING:
    from torch import nn

    from encore.modeling.encoder import Encoder
    from encore.tokens import TokenStore

__all__ = ["Arrays", "Objective", "Pass"]

F = TypeVar("F", bound=PretrainStep)


class Objective(Task, Generic[F]):
    """One pre-training objective on one token store.

    Subclasses set ``Fields`` (their configuration) and ``impl`` (bumped when the numbers that they make change), and
    implement ``heads`` and the methods of ``Task``; their file names the class ``OBJECTIVE``.

    Raises:
        EncoreError: the store lacks what the objective needs (sections, links), or holds no usable text.
    """

    Fields: ClassVar[type[PretrainStep]]
    impl: ClassVar[int] = 1

    def __init__(self, fields: F, store: TokenStore) -> None:
        self.fields = fields
        self.store = store

    @abstractmethod
    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """The modules that the objective trains beside the encoder; saved in ``heads.safetensors``."""

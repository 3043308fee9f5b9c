"""The base of objectives: a training task on tokens or articles, and the modules trained besides the encoder.

Objectives are imported while the workflow is parsed (their fields are part of the configuration), so their files import
torch inside methods only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from encore.config.entries import PretrainStep
from encore.config.validation import Strict
from encore.training.task import Arrays, ForwardOutput, Task

if TYPE_CHECKING:
    from torch import nn

    from encore.data.tokens import TokenStore
    from encore.models.encoder import Encoder

__all__ = ["Arrays", "ForwardOutput", "Objective", "Preparation"]

F = TypeVar("F", bound=PretrainStep)


class Preparation(Strict, ABC):
    """An artifact that an objective computes from a collection once, before any training.

    Its fields are those of the objective that decide its content, so steps that agree in them share it.
    """

    name: ClassVar[str]
    reads_attention: ClassVar[bool] = False  # of the step's parent; computed first, on a GPU if possible

    @abstractmethod
    def write(
        self, store: TokenStore, output: Path, attention: Path | None = None, processes: int = 1
    ) -> dict[str, Any]:
        """Write the files into the folder ``output`` and return counts for its manifest.

        No model is read here. The bytes are the same for any number of processes.

        Args:
            attention: the folder of the model's attention to the texts (``parts/attention.py``), where it is read.
            processes: how many share the work.
        """


class Objective(Task, Generic[F]):
    """One pre-training objective on one token store.

    Subclasses set ``Fields`` (their configuration) and ``impl`` (bumped when the numbers that they make change), and
    implement ``heads`` and the methods of ``Task``; their file names the class ``OBJECTIVE``.
    """

    Fields: ClassVar[type[PretrainStep]]
    Prepares: ClassVar[type[Preparation] | None] = None
    impl: ClassVar[int] = 1
    reads_articles: ClassVar[bool] = False  # with sections or links, which passages alone do not have
    pairs_sentences: ClassVar[bool] = False  # of one text, which then needs two
    views: ClassVar[int] = 1  # texts that are read of an example, for forecasts

    def __init__(self, fields: F, store: TokenStore, prepared: Path | None = None) -> None:
        self.fields = fields
        self.store = store
        self.prepared = prepared

    @classmethod
    def preparation(cls, fields: F) -> Preparation | None:
        """The preparation that a step with these fields needs, or None; its folder is given as ``prepared``."""
        if cls.Prepares is None:
            return None
        return cls.Prepares(**{name: getattr(fields, name) for name in cls.Prepares.model_fields})

    @classmethod
    def needs_states(cls, fields: F) -> bool:
        """True if a step with these fields reads an encoder's states of tokens, which a bag of words does not have."""
        return True

    def counts(self) -> dict[str, float]:
        """Counts of the examples, held-out ones included, for the manifest of a training."""
        return {"pairs": len(self)}

    @abstractmethod
    def heads(self, encoder: Encoder) -> nn.ModuleDict:
        """The modules that the objective trains besides the encoder; saved in ``heads.safetensors``."""

    def begin(self, heads: nn.ModuleDict) -> None:
        """Change the modules before training, once they have what the parent model gives them."""

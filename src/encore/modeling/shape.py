"""The shape of an encoder: everything that its weights and its use depend on, without torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from encore.config import Backbone
from encore.errors import EncoreError
from encore.vocabulary import SpecialTokens

Pooling = Literal["cls", "mean", "content"]
Similarity = Literal["dot", "cosine"]
Projector = Literal["none", "linear", "nonlinear"]
Towers = Literal["tied", "untied"]


@dataclass(frozen=True)
class Shape:
    """A BERT encoder (Devlin et al., 2019) and how a vector is made from its output.

    ``pooling``: the vector at [CLS], the mean over all real tokens, or over those that are not special. ``projector``:
    a map of the pooled vector that keeps its size. ``head``: the dimension of a linear map behind these, none without.
    ``similarity``: cosine means vectors of length 1. ``towers``: untied means another such encoder for queries.
    """

    vocabulary: int
    layers: int = 12
    hidden: int = 768
    heads: int = 12
    intermediate: int = 3072
    max_length: int = 512
    dropout: float = 0.1
    pooling: Pooling = "cls"
    similarity: Similarity = "dot"
    head: int | None = None
    pad: int = 0
    cls: int = 2
    sep: int = 3
    segments: int = 2
    epsilon: float = 1e-12
    projector: Projector = "none"
    towers: Towers = "tied"

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise EncoreError(
                f"an encoder of width {self.hidden} cannot have {self.heads} attention heads; "
                "choose a number that divides the width"
            )

    @property
    def dimension(self) -> int:
        """Numbers in a text's vector."""
        return self.head or self.hidden

    @classmethod
    def of(cls, backbone: Backbone, vocabulary: int, special: SpecialTokens) -> Shape:
        """The shape that a backbone of the catalogue describes, for a vocabulary of so many entries."""
        return cls(
            vocabulary=vocabulary,
            layers=backbone.layers,
            hidden=backbone.hidden,
            heads=backbone.heads,
            intermediate=backbone.intermediate,
            max_length=backbone.max_length,
            dropout=backbone.dropout,
            pooling=backbone.pooling,
            similarity=backbone.similarity,
            head=backbone.head,
            pad=special.pad,
            cls=special.cls,
            sep=special.sep,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

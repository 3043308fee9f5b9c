"""What is measured: the model, the batch, the machine's part in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from encore.models.config import EncoderConfig
from harness.timing import Kind

SHAPES: dict[str, dict[str, Any]] = {
    "nano": {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64},
    "tiny": {"layers": 2, "hidden": 128, "heads": 2, "intermediate": 512},
    "mini": {"layers": 4, "hidden": 256, "heads": 4, "intermediate": 1024},
    "minilm": {"layers": 6, "hidden": 384, "heads": 12, "intermediate": 1536, "pooling": "mean"},
    "base": {"layers": 12, "hidden": 768, "heads": 12, "intermediate": 3072},
}


@dataclass(frozen=True)
class Setting:
    """Everything that the figures depend on besides the machine."""

    model: str
    vocabulary: int
    length: int
    batch: int
    full: bool
    precision: str
    threads: int
    clock: Kind
    repetitions: int
    steps: int

    def shape(self, positions: int = 64) -> EncoderConfig:
        """Of the model, with at least so many positions."""
        return EncoderConfig(vocabulary=self.vocabulary, max_length=max(self.length, positions), **SHAPES[self.model])

    def numerics(self) -> dict[str, Any]:
        return {"precision": self.precision, "threads": self.threads}

    def resized(self, length: int) -> Setting:
        """For texts of another length."""
        return replace(self, length=length)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")

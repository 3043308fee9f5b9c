"""The record of a training: steps, examples, FLOPs, losses; part of checkpoints and results."""

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from encore.storage import environment
from encore.training.progress import ROWS, CurvePoint

CURVES = ("losses", "held_out")


@dataclass
class Trained:
    """The record of a training; the encoder and the heads that were given hold its weights.

    ``micro_batch``: the most examples that went through the models at once; ``micro_batch_tokens``: the most tokens,
    once memory had run out. ``counts``: of what there was to learn from, for the manifest.
    """

    steps: int = 0
    examples: int = 0
    flops: float = 0.0
    losses: list[CurvePoint] = field(default_factory=list)
    held_out: list[CurvePoint] = field(default_factory=list)
    validations: list[tuple[int, float]] = field(default_factory=list)
    best_step: int | None = None
    micro_batch: int | None = None
    micro_batch_tokens: int | None = None
    counts: dict[str, float] = field(default_factory=dict)

    def count(self, values: dict[str, float], examples: int, flops: float, total: int) -> None:
        """Note one more step; about ``ROWS`` of the ``total`` steps leave a point of the curve."""
        self.steps += 1
        self.examples += examples
        self.flops += flops
        if self.steps % math.ceil(total / ROWS) == 0 or self.steps in (1, total):
            self.losses.append(CurvePoint(self.steps, values))

    @property
    def results(self) -> dict[str, Any]:
        """The entries of a manifest."""
        return {"steps": self.steps, "examples": self.examples, "flops": self.flops, **self.counts}

    @property
    def facts(self) -> dict[str, Any]:
        """The entries of ``run.json``: the last losses, and the machine; ``threads`` are those of each process."""
        processes = environment.number(environment.SIZE)
        parts = {"micro_batch": self.micro_batch, "processes": processes, "threads": torch.get_num_threads()}
        return {"losses": self.losses[-1].terms, **parts}

    def packed(self) -> dict[str, Any]:
        """The record in plain types, as a checkpoint holds it."""
        return {**vars(self), **{name: [tuple(point) for point in getattr(self, name)] for name in CURVES}}

    @classmethod
    def unpacked(cls, content: dict[str, Any]) -> "Trained":
        """The record that ``packed`` gave."""
        curves = {name: [CurvePoint(*point) for point in content[name]] for name in CURVES}
        known = cls.__dataclass_fields__  # an earlier version noted more
        return cls(**{name: content[name] for name in content if name in known} | curves)

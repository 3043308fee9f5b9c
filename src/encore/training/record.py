"""The record of a training: steps, examples, FLOPs, losses; part of checkpoints and results."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from encore.storage import environment
from encore.training.progress import ROWS, CurvePoint

T = TypeVar("T")
CURVES = ("losses", "held_out")


@dataclass
class Trained:
    """The record of a training; the encoder and the heads that were given hold its weights.

    ``micro_batch``: the most examples that went through the models at once; ``micro_batch_tokens``: the most tokens,
    once memory had run out. ``data_seconds``: on the clock, in which batches were waited for, or made where nothing
    makes them ahead. ``counts``: of what there was to learn from, for the manifest.
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
    data_seconds: float = field(default=0.0, compare=False)
    counts: dict[str, float] = field(default_factory=dict)

    def timed(self, batches: Iterator[T]) -> Iterator[T]:
        """The same batches; how long each took to come is noted."""
        started = time.monotonic()
        for batch in batches:
            self.data_seconds += time.monotonic() - started
            yield batch
            started = time.monotonic()

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
        return {"losses": self.losses[-1].terms, **parts, "data_seconds": round(self.data_seconds, 2)}

    def packed(self) -> dict[str, Any]:
        """The record in plain types, as a checkpoint holds it."""
        return {**vars(self), **{name: [tuple(point) for point in getattr(self, name)] for name in CURVES}}

    @classmethod
    def unpacked(cls, content: dict[str, Any]) -> "Trained":
        """The record that ``packed`` gave."""
        return cls(**{**content, **{name: [CurvePoint(*point) for point in content[name]] for name in CURVES}})

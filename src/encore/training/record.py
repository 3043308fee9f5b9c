"""The record of a training, part of checkpoints and results: steps, examples, FLOPs, losses; and what it prints."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from encore.storage import environment
from encore.storage.files import write_text

ROWS = 100  # points of a curve, about
SECONDS = 10.0  # between two lines
CURVES = ("losses", "held_out")


class CurvePoint(NamedTuple):
    """The terms of the loss at a step, counted from 1; at 0, before any."""

    step: int
    terms: dict[str, float]

    def rounded(self) -> dict[str, float]:
        """The terms as a curve gives them."""
        return {name: float(f"{value:.6g}") for name, value in self.terms.items()}


def write_curve(path: Path, points: list[CurvePoint]) -> None:
    """A table ``step, loss, other terms``, the same bytes for the same run."""
    names = list(points[0].terms) if points else []
    rows = [["step", *names], *([str(step), *(f"{terms[name]:.6g}" for name in names)] for step, terms in points)]
    write_text(path, "".join("\t".join(row) + "\n" for row in rows))


def write_validations(path: Path, validations: Sequence[tuple[int, float]], measure: str = "RR@10") -> None:
    """Write every value with its step, in order."""
    write_text(path, f"step\t{measure.lower()}\n" + "".join(f"{step}\t{value:.6f}\n" for step, value in validations))


def mean_cosine(before: np.ndarray, after: np.ndarray) -> float:
    """How near vectors [N, D] have stayed to what they were: the mean of their cosines."""
    norms = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    return float(np.mean(np.einsum("nd,nd->n", before, after, dtype=np.float64) / np.maximum(norms, 1e-12)))


def format_terms(terms: dict[str, float]) -> str:
    """The terms of a loss as one line of text."""
    return " ".join(f"{name} {value:.4f}" for name, value in terms.items())


class TrainingProgress:
    """Prints step, loss terms, rate and time left now and then."""

    def __init__(self, start: int, total: int, says: bool = True) -> None:
        self.says = says
        self.start, self.total = start, total
        self.began = self.printed = time.monotonic()
        self.examples = 0

    def step(self, step: int, terms: dict[str, float], examples: int) -> None:
        """Note that ``step`` is done."""
        self.examples += examples
        now = time.monotonic()
        if not self.says or (now - self.printed < SECONDS and step != self.total):
            return
        self.printed = now
        seconds = max(now - self.began, 1e-9)
        left = seconds / (step - self.start) * (self.total - step)
        speed = f"{_speed(self.examples / seconds)} examples/s  {left:.0f} s left"
        print(f"step {step}/{self.total}  {format_terms(terms)}  {speed}", flush=True)


def _speed(rate: float) -> str:
    """A rate with two digits at least."""
    return f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"


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
        """The entries of a manifest; with validations the step that was kept, and how many others were as good."""
        values = [value for _, value in self.validations]
        found: dict[str, Any] = {"steps": self.steps, "examples": self.examples, "flops": self.flops, **self.counts}
        if values:
            found |= {"best_step": self.best_step, "validations": len(values)}
            found |= {"equal_validations": values.count(max(values))}
        return found

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

"""The lines that a training prints, and the curve of its losses."""

import time
from pathlib import Path
from typing import NamedTuple

from encore.storage.files import write_text

ROWS = 100  # points of a curve, about
SECONDS = 10.0  # between two lines


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
        speed = f"{self.examples / seconds:.0f} examples/s  {left:.0f} s left"
        print(f"step {step}/{self.total}  {format_terms(terms)}  {speed}", flush=True)

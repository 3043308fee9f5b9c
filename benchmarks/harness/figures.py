"""From readings to figures: speeds, degenerations, and the efficiency table of "Drop your Decoder" (SIGIR'24)."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness import timing

REPORTED = Path(__file__).parents[2] / "config/papers/bow/reported/table4.csv"
BASE = "MLM 30 %"  # what the rows of the table are compared with
# Rows of Table 4: ours, the paper's label, how making a batch and the decoder grow with the n tokens of a text.
TABLE4 = (
    (BASE, "Further Pre-train", "O(n)", "-"),
    ("autoencoding", "Auto-Encoding", "O(n)", "O(n^2)"),
    ("autoregression", "Auto-Regression", "O(n)", "O(n^2)"),
    ("enhanced", "Enhanced Decoding", "O(n)", "O(n^2)"),  # its masks are drawn in the step
    ("bow", "BoW Prediction", "O(n)", "-"),
)
# Goals, each a ratio that must be reached: speed relative to our own MLM, for BERT-base.
SPEEDS = {"bow": 0.98, "autoencoding": 0.78, "autoregression": 0.70, "enhanced": 0.70}
EXPLAINED = 1.10  # at most: time compared with our own MLM, over operations compared with it
EXPLAINED_RIVALS = {"condenser": 1.15, "cocondenser": 1.15, "simlm": 1.15}  # of those compared with
TRAINER = 2.5  # speed of an MLM step compared with Trainer's


class Measured(NamedTuple):
    """One of those that were measured."""

    name: str
    step: float  # seconds of an optimiser step, making its batch included
    data: float  # seconds of making a batch
    flops: float  # of a step
    batch: int
    wait: float = 0.0  # share of a step's time, until its batch was there
    launch: float = 0.0  # share, until forward and backward pass were called

    @property
    def speed(self) -> float:
        """Samples a second."""
        return self.batch / self.step


def rows(measured: Sequence[Measured], peak: float) -> list[dict[str, Any]]:
    """A line for each, compared with the base."""
    base = next(one for one in measured if one.name == BASE)
    return [
        {
            "name": one.name,
            "samples_per_second": rounded(one.speed),
            "step_seconds": rounded(one.step),
            "data_seconds": rounded(one.data),
            "gflop_per_sample": rounded(one.flops / one.batch / 1e9),
            "utilisation": rounded(timing.utilisation(one.flops, one.step, peak)),
            "wait_percent": rounded(100 * one.wait),
            "launch_percent": rounded(100 * one.launch),
            "speed_of_mlm": rounded(one.speed / base.speed),
            "time_over_operations": rounded(timing.overhead(one.step, one.flops, base.step, base.flops)),
        }
        for one in measured
    ]


def table4(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """The paper's table from our readings, next to its own numbers; a row whose objective is missing is left out.

    The decoder's time is what a step takes beyond that of the base, making batches left out of both.
    """
    by_name = {one.name: one for one in measured}
    base, printed = by_name[BASE], _reported()
    return [
        {
            "label": label,
            "data_complexity": data,
            "data_seconds": rounded(by_name[name].data),
            "decoder_complexity": decoder,
            "decoder_seconds": "" if name == BASE else rounded(_decoder(by_name[name], base)),
            "samples_per_second": rounded(by_name[name].speed),
            "degeneration": "" if name == BASE else rounded(timing.degeneration(by_name[name].speed, base.speed)),
            "operations_of_mlm": rounded(_work(by_name[name]) / _work(base)),
            **{f"paper_{key}": printed[label, metric] for key, metric in _PRINTED.items()},
        }
        for name, label, data, decoder in TABLE4
        if name in by_name
    ]


def goals(measured: Sequence[dict[str, Any]], trainer: float | None, base: bool) -> list[dict[str, Any]]:
    """What was aimed at, what came out, and whether that is enough.

    Args:
        trainer: speed of an MLM step compared with Trainer's.
        base: the model is a BERT-base; of smaller ones the vocabulary head has another share.
    """
    by_name = {row["name"]: row for row in measured}
    found = [] if trainer is None else [goal("MLM step, speed relative to Trainer", trainer, TRAINER)]
    for name, aim in SPEEDS.items():
        if name in by_name:
            row = by_name[name]
            over = row["time_over_operations"]
            if base:
                found.append(goal(f"{name}, speed relative to MLM 30 %", row["speed_of_mlm"], aim))
            found.append(goal(f"{name}, time over operations relative to MLM 30 %", over, EXPLAINED, most=True))
    for name, aim in EXPLAINED_RIVALS.items():
        if name in by_name:
            over = by_name[name]["time_over_operations"]
            found.append(goal(f"{name}, time over operations relative to MLM 30 %", over, aim, most=True))
    return found


def goal(name: str, value: float, aim: float, most: bool = False) -> dict[str, Any]:
    """A line about one goal."""
    reached = value <= aim if most else value >= aim
    return {
        "goal": name,
        "value": rounded(value),
        "aim": f"{'at most' if most else 'at least'} {aim}",
        "reached": reached,
    }


def rounded(value: float) -> float:
    """To four digits."""
    return float(f"{value:.4g}")


_PRINTED = {
    "data_seconds": "data process time (s)",
    "decoder_seconds": "decoder GPU time (s)",
    "samples_per_second": "training speed (samples/s)",
    "degeneration": "degeneration (%)",
}


def _work(one: Measured) -> float:
    return one.flops / one.batch


def _decoder(one: Measured, base: Measured) -> float:
    return (one.step - one.data) - (base.step - base.data)


def _reported() -> dict[tuple[str, str], str]:
    """What the paper prints, by row and column."""
    with REPORTED.open(encoding="utf-8", newline="") as file:
        return {(row["row_label"], row["metric"]): row["value"] for row in csv.DictReader(file)}

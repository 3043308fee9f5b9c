"""Clocks, and what is made of their readings."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch

Kind = Literal["wall", "cpu"]
PEAK_SIZE = {"cpu": 1024, "cuda": 8192}  # of the square matrices whose product is the machine's best


class Seconds(NamedTuple):
    """By the clock on the wall, and of all cores together in this process."""

    wall: float
    cpu: float

    def __sub__(self, other: Seconds) -> Seconds:
        return Seconds(self.wall - other.wall, self.cpu - other.cpu)

    def __truediv__(self, count: int) -> Seconds:
        return Seconds(self.wall / count, self.cpu / count)


def clock() -> Seconds:
    """The time, whatever the device still has to do."""
    return Seconds(time.perf_counter(), time.process_time())


def now() -> Seconds:
    """The time at which the device has done what it was told to do."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock()


def time_of(work: Callable[[], object]) -> Seconds:
    start = now()
    work()
    return now() - start


def best(readings: Sequence[Seconds], kind: Kind) -> float:
    """The shortest: others differ from it by what else the machine did."""
    return min(getattr(reading, kind) for reading in readings)


def degeneration(speed: float, base: float) -> float:
    """By how much of the base's speed something is slower, as Table 4 of "Drop your Decoder" has it; in percent."""
    return 100 * (1 - speed / base)


def utilisation(flops: float, seconds: float, peak: float) -> float:
    """Share of the machine's best (operations a second) that the model's own operations reach."""
    return flops / seconds / peak


def overhead(seconds: float, flops: float, base_seconds: float, base_flops: float) -> float:
    """How much longer something takes than its operations explain, compared with a base: 1 is not at all."""
    return (seconds / base_seconds) / (flops / base_flops)


def peak(kind: Kind, precision: str, repetitions: int = 10, on: str | None = None) -> float:
    """Operations a second of the best of several products of square matrices, on a GPU where there is one."""
    device = on or ("cuda" if torch.cuda.is_available() else "cpu")
    size = PEAK_SIZE[device]
    left = torch.randn(size, size, device=device, dtype=torch.bfloat16 if precision == "bf16" else torch.float32)
    left @ left
    return 2.0 * size**3 / best([time_of(lambda: left @ left) for _ in range(repetitions)], kind)

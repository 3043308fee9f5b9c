"""Wall-clock time of single queries, one after another: what one user waits for, not what a batch takes."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]


@dataclass(frozen=True)
class Stage:
    """A part of answering: its name, how it was carried out, and its milliseconds for each query."""

    name: str
    how: str
    times: Times


def measure(answer: Callable[[int], object], queries: int, warm_up: int) -> Times:
    """Milliseconds of ``answer(number)`` for each query, after ``warm_up`` answers that are not timed.

    Those fill caches and let a virtual machine compile; they go through the queries from the first on, and around.
    """
    for number in range(warm_up):
        answer(number % queries)
    times = np.empty(queries)
    for number in range(queries):
        began = time.perf_counter_ns()
        answer(number)
        times[number] = (time.perf_counter_ns() - began) / 1e6
    return times


def summary(times: Times) -> dict[str, float]:
    """Median, 90th percentile (linear between order statistics) and mean, in milliseconds."""
    median, high = np.percentile(times, [50, 90])
    values = {"median_ms": median, "p90_ms": high, "mean_ms": times.mean()}
    return {name: round(float(value), 4) for name, value in values.items()}

"""Several ways to the same end, in turns in one process, by the seconds of the processor that each takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from harness import timing
from harness.figures import rounded

T = TypeVar("T")


def in_turns(ways: Mapping[str, Callable[[], T]], turns: int) -> tuple[dict[str, T], dict[str, float]]:
    """What each way gives, and the seconds of the processor of its best turn.

    In every turn each way is gone once, so that other work on the machine meets all of them.
    """
    given: dict[str, T] = {}
    readings: dict[str, list[timing.Seconds]] = {name: [] for name in ways}
    for turn in range(turns):
        for name, way in ways.items():
            print(f"turn {turn + 1}/{turns}  {name}", flush=True)
            before = timing.now()
            given[name] = way()
            readings[name].append(timing.now() - before)
    return given, {name: timing.best(its, "cpu") for name, its in readings.items()}


def rows(seconds: Mapping[str, float], count: int, things: str, base: str) -> list[dict[str, Any]]:
    """A line for each way.

    Args:
        count: of ``things`` that a way goes through.
        base: the way that the speed of others is compared with.
    """
    return [
        {
            "way": name,
            "cpu_seconds": rounded(its),
            f"{things}_per_second": rounded(count / its),
            "speed": rounded(seconds[base] / its),
        }
        for name, its in seconds.items()
    ]

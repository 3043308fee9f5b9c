"""Crossover of two curves: the last place at which one falls to the other, its interval, and sentences about it.

Curves are straight between their points over the logarithm of x. A crossing is ``-inf`` where the first is nowhere
ahead on their common range, ``inf`` where it is ahead at its end, and ``nan`` where they have no common range.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encore.evaluation.significance import can_be_tested, clustered

Floats = NDArray[np.float64]
PLACES = 17  # where the lead is tested
ENOUGH_SEEDS = 5
OVER = {"passages": "passages", "queries": "training queries", "operations": "operations of fine-tuning"}
CROSSOVER = "crossover"  # what lines of a figure's CSV about ends say under `what`
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Crossing:
    """The crossing ``at`` of the mean curves, in the unit of x, and its 95 % interval (None below five seeds)."""

    at: float
    low: float | None = None
    high: float | None = None


def crossing(over: Floats, own: Floats, over_other: Floats, other: Floats) -> float:
    """Where the curve ``own`` over ``over`` last falls to ``other``; all [points], x ascending and positive."""
    x, theirs = np.log(over), np.log(over_other)
    first, last = max(x[0], theirs[0]), min(x[-1], theirs[-1])
    if first >= last:
        return float("nan")
    inner = np.concatenate([x, theirs])
    grid = np.unique(np.concatenate([[first, last], inner[(inner > first) & (inner < last)]]))
    ahead = np.interp(grid, x, own) - np.interp(grid, theirs, other)
    if ahead[-1] > 0:
        return float("inf")
    places = np.flatnonzero(ahead > 0)
    if not len(places):
        return float("-inf")
    place = places[-1]
    share = ahead[place] / (ahead[place] - ahead[place + 1])
    return float(np.exp(grid[place] + share * (grid[place + 1] - grid[place])))


def with_interval(over: Floats, own: Floats, over_other: Floats, other: Floats, clusters: Sequence[str]) -> Crossing:
    """The crossing of the mean curves, with the 95 % interval of where the lead may end; none below five seeds.

    It is a confidence set by inverting a test (Fieller, Journal of the Royal Statistical Society B 16, 1954): from the
    last place where the lead is significantly above 0 to the last where it is not significantly below, by the test of
    ``evaluation.significance``, so that errors of queries and of seeds both count.

    Args:
        over, over_other: [points], ascending and positive: queries, operations or passages.
        own, other: [points, queries, seeds] in the measure's unit, of the same queries and seeds in the same order.
        clusters: [queries], the cluster that each query belongs to.
    """
    at = crossing(over, own.mean((1, 2)), over_other, other.mean((1, 2)))
    if own.shape[2] < ENOUGH_SEEDS or np.isnan(at) or not can_be_tested(clusters):
        return Crossing(at)
    x, theirs = np.log(over), np.log(over_other)
    first, last = max(x[0], theirs[0]), min(x[-1], theirs[-1])
    grid = np.unique(
        np.concatenate([np.linspace(first, last, PLACES), *(e[(e > first) & (e < last)] for e in (x, theirs))])
    )
    ends = [
        clustered(np.tensordot(ours, own, 1) - np.tensordot(others, other, 1), clusters).interval()
        for ours, others in zip(_weights(grid, x), _weights(grid, theirs), strict=True)
    ]
    low, high = (crossing(np.exp(grid), end, np.exp(grid), np.zeros(len(grid))) for end in np.array(ends).T)
    return Crossing(at, low, high)


def _weights(grid: Floats, x: Floats) -> Floats:
    """What each point counts at each place of the grid, [grid, points], by straight lines."""
    return np.stack([np.interp(grid, x, unit) for unit in np.eye(len(x))], axis=1)


@dataclass(frozen=True)
class AdvantageEnd:
    """The crossover of one line with another: its place and, with enough seeds, its 95 % interval."""

    label: str
    against: str
    panel: str
    over: str
    at: float
    low: float | None = None
    high: float | None = None


def of_lines(lines: Sequence[Mapping[str, str]]) -> list[AdvantageEnd]:
    """Read the crossovers from the lines of a figure's CSV."""
    found = []
    for line in (line for line in lines if line.get("what") == CROSSOVER):
        low, high = (float(line[name]) if line[name] else None for name in ("low", "high"))
        label, against, panel, over = (line[name] for name in ("label", "against", "panel", "over"))
        found.append(AdvantageEnd(label, against, panel, over, float(line["x"]), low, high))
    return found


def sentences(ends: Sequence[AdvantageEnd]) -> Iterator[str]:
    """One sentence for each panel and each line that others are compared with: whose lead over it ends where."""
    several = len({end.panel for end in ends}) > 1
    for panel, over, against in dict.fromkeys((end.panel, end.over, end.against) for end in ends):
        own = [end for end in ends if (end.panel, end.over, end.against) == (panel, over, against)]
        parts = {
            "ends at": [f"{_place(e.at, over)}{_interval(e)} ({e.label})" for e in own if math.isfinite(e.at)],
            "is not seen to end for": [e.label + _interval(e) for e in own if e.at == math.inf],
            "is nowhere for": [e.label + _interval(e) for e in own if e.at == -math.inf],
            "has no common range for": [e.label for e in own if math.isnan(e.at)],
        }
        told = "; it ".join(f"{says} {', '.join(named)}" for says, named in parts.items() if named)
        where = f"{panel}, by {OVER[over]}" if several else f"By {OVER[over]}"
        yield f"{where}, the lead over {against} {told}."


def power(value: float, digits: int = 0) -> str:
    """A number as ``2·10¹²``."""
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    raised = f"10{str(int(exponent)).translate(RAISED)}"
    return raised if float(mantissa) == 1 else f"{mantissa}·{raised}"


def _place(value: float, over: str) -> str:
    return power(value, 1) if over == "operations" else f"{value:,.0f}"


def _interval(end: AdvantageEnd) -> str:
    """The 95 % interval in brackets; empty if there is none or it is a single point."""
    if end.low is None or end.high is None or (math.isclose(end.low, end.at) and math.isclose(end.high, end.at)):
        return ""
    bounds = {math.inf: "not seen", -math.inf: "nowhere"}
    return " [" + ", ".join(bounds.get(bound) or _place(bound, end.over) for bound in (end.low, end.high)) + "]"

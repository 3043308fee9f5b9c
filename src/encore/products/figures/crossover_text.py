"""Sentences about crossovers in the caption of a figure: one for each line that others are compared with.

An end is ``inf`` where it is not seen, since the first is ahead at the last point, ``-inf`` where it is nowhere ahead,
``nan`` where the two curves have no common range; see ``crossover.py``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

OVER = {"passages": "passages", "queries": "training queries", "operations": "operations of fine-tuning"}
CROSSOVER = "crossover"  # what lines of a figure's CSV about ends say under `what`
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


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
    return [
        AdvantageEnd(line["label"], line["against"], line["panel"], line["over"], float(line["x"]), *_bounds(line))
        for line in lines
        if line.get("what") == CROSSOVER
    ]


def sentences(ends: Sequence[AdvantageEnd]) -> Iterator[str]:
    """One sentence for each panel and each line that others are compared with: whose lead over it ends where."""
    several = len({end.panel for end in ends}) > 1
    for panel, over, against in dict.fromkeys((end.panel, end.over, end.against) for end in ends):
        own = [end for end in ends if (end.panel, end.over, end.against) == (panel, over, against)]
        parts = [
            _part("ends at", [f"{_place(end.at, over)}{_interval(end)} ({end.label})" for end in own if _seen(end)]),
            _part("is not seen to end for", [end.label + _interval(end) for end in own if end.at == math.inf]),
            _part("is nowhere for", [end.label + _interval(end) for end in own if end.at == -math.inf]),
            _part("has no common range for", [end.label for end in own if math.isnan(end.at)]),
        ]
        where = f"{panel}, by {OVER[over]}" if several else f"By {OVER[over]}"
        yield f"{where}, the lead over {against} {'; it '.join(filter(None, parts))}."


def power(value: float, digits: int = 0) -> str:
    """A number as ``2·10¹²``."""
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    raised = f"10{str(int(exponent)).translate(RAISED)}"
    return raised if float(mantissa) == 1 else f"{mantissa}·{raised}"


def _seen(end: AdvantageEnd) -> bool:
    return math.isfinite(end.at)


def _part(says: str, found: Sequence[str]) -> str:
    return f"{says} {', '.join(found)}" if found else ""


def _place(value: float, over: str) -> str:
    return power(value, 1) if over == "operations" else f"{value:,.0f}"


def _interval(end: AdvantageEnd) -> str:
    """The 95 % interval in brackets; empty where there is none, or where it is a single point."""
    if end.low is None or end.high is None or (math.isclose(end.low, end.at) and math.isclose(end.high, end.at)):
        return ""
    bounds = {math.inf: "not seen", -math.inf: "nowhere"}
    return " [" + ", ".join(bounds.get(bound) or _place(bound, end.over) for bound in (end.low, end.high)) + "]"


def _bounds(line: Mapping[str, str]) -> tuple[float | None, float | None]:
    low, high = (float(line[name]) if line[name] else None for name in ("low", "high"))
    return low, high

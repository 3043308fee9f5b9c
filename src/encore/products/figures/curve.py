"""The drawing of curves: one panel a measure (and what it is over), one line a system, the mean of seeds and samples.

Below the panels, if a figure requests it: where the advantage of each objective ends.
"""

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from encore.evaluation import scores
from encore.evaluation.scores import exact_mean
from encore.products.figures import style
from encore.products.figures.crossover import (
    CROSSOVER,
    ENOUGH_SEEDS,
    OVER,
    AdvantageEnd,
    Crossing,
    Floats,
    power,
    sentences,
    with_interval,
)
from encore.products.figures.curves import STATISTICS, CurveLine, CurvePanel, CurvePoint, CurvesSlice
from encore.products.figures.style import COLOURS, INK, SOFT
from encore.storage import manifest
from encore.storage.csv_rows import number


@dataclass(frozen=True)
class Curve:
    """A line in a panel: ``x`` [sizes], means over seeds and samples, and ``values`` [seeds, samples, sizes].

    ``scores`` are those of the queries, [sizes, queries, seeds], means over samples; ``clusters`` those of the queries.
    """

    line: CurveLine
    panel: CurvePanel
    sizes: list[int | float | str]
    seeds: list[int | None]
    samples: list[int]
    x: Floats
    values: Floats
    scores: Floats
    clusters: list[str]

    def mean(self) -> Floats:
        """Means over seeds and samples, [sizes], exactly rounded."""
        return np.array([exact_mean(column.ravel()) for column in np.moveaxis(self.values, -1, 0)])


@dataclass(frozen=True)
class Ending:
    """Where the advantage of a line over another ends."""

    panel: CurvePanel
    line: CurveLine
    against: CurveLine
    crossing: Crossing

    def told(self) -> AdvantageEnd:
        """The same by names, for sentences."""
        at, panel = self.crossing, self.panel
        return AdvantageEnd(self.line.label, self.against.label, panel.label, panel.over, at.at, at.low, at.high)


def endings(figure: CurvesSlice, found: list[Curve]) -> list[Ending]:
    """Where the advantage of each objective ends, over each line that it is compared with."""
    known = {(curve.panel, curve.line.id): curve for curve in found}
    ends = []
    for own in (curve for curve in found if curve.line.role == "objective"):
        for name in figure.crossover:
            other = known.get((own.panel, name))
            if other is not None and len(own.x) > 1 and len(other.x) > 1:
                at = with_interval(own.x, own.scores, other.x, other.scores, own.clusters)
                ends.append(Ending(own.panel, own.line, other.line, at))
    return ends


def _curve(line: CurveLine, panel: CurvePanel) -> Curve:
    own = [point for point in line.points if point.measured == panel.measured]
    sizes = list(dict.fromkeys(point.size for point in own))
    seeds, samples = list(dict.fromkeys(p.seed for p in own)), sorted({p.sample for p in own})
    shape = (len(seeds), len(samples), len(sizes))
    clusters = _scores(own[0].scores)[panel.split, panel.measure].clusters
    x, values, each = np.full(shape, np.nan), np.full(shape, np.nan), np.full((*shape, len(clusters)), np.nan)
    for point in own:
        at = seeds.index(point.seed), samples.index(point.sample), sizes.index(point.size)
        scored = _scores(point.scores)[panel.split, panel.measure]
        x[at], values[at], each[at] = _place(point, panel), exact_mean(scored.values), scored.values
    mean = np.array([exact_mean(column.ravel()) for column in np.moveaxis(x, -1, 0)])
    order = np.argsort(mean, kind="stable")
    kept = [sizes[place] for place in order]
    by_query = each.mean(1).transpose(1, 2, 0)[order]
    return Curve(line, panel, kept, seeds, samples, mean[order], values[..., order], by_query, clusters)


def _place(point: CurvePoint, panel: CurvePanel) -> float:
    """The place of a point on the x axis."""
    if point.seed is None:
        return 0.0
    match panel.over:
        case "passages":
            return float(manifest.read_results(str(point.run))["passages"])
        case "queries":  # as requested, or all if the collection has fewer
            statistics = json.loads(Path(str(point.collection), STATISTICS).read_text())
            there = int(statistics["splits"][point.train_split]["queries"])
            return float(there if point.queries is None else min(point.queries, there))
        case "operations":
            return math.fsum(float(manifest.read_results(model)["flops"]) for model in point.models)


@cache
def _scores(folder: str) -> scores.Scores:
    return scores.read_scores(Path(folder))


ACROSS = 2  # panels
ROUND = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8))  # what round numbers may begin with, coarse first
TICKS = 5  # at most
LINE, ENDED = 2.6, 0.2  # inches: a panel's height, a line of where advantages end


def draw(figure: CurvesSlice) -> tuple[list[list[str]], Figure]:
    """The lines of data and the page."""
    found = [
        _curve(line, panel)
        for panel in figure.panels
        for line in figure.rows
        if any(point.measured == panel.measured for point in line.points)  # a level's dataset may lack a split
    ]
    ended = endings(figure, found)
    lines = [row for curve in found for row in _rows(curve)] + [_end(ending) for ending in ended]
    return lines, _page(figure, found, ended)


def _rows(curve: Curve) -> list[list[str]]:
    panel, line = curve.panel, curve.line
    about = ["value", line.label, line.system, panel.label, panel.split, panel.measure, panel.over]
    return [
        [*about, *chance, str(size), x, number(curve.values[one, two, at]), "", "", ""]
        for one, seed in enumerate(curve.seeds)
        for two, sample in enumerate(curve.samples)
        for chance in [["" if seed is None else str(seed), str(sample)]]
        for at, size in enumerate(curve.sizes)
        for x in ["" if line.level else number(curve.x[at])]
    ]


def _end(ending: Ending) -> list[str]:
    """An advantage's end; ``inf`` is beyond the last point, ``-inf`` before the first, ``nan`` nothing in common."""
    panel, line, at = ending.panel, ending.line, ending.crossing
    about = [CROSSOVER, line.label, line.system, panel.label, panel.split, panel.measure, panel.over, "", "", ""]
    return [*about, number(at.at), "", ending.against.label, number(at.low), number(at.high)]


def _page(figure: CurvesSlice, found: list[Curve], ended: list[Ending]) -> Figure:
    across = len(figure.panels) if ended else min(ACROSS, len(figure.panels))  # above where its advantages end
    down = -(-len(figure.panels) // across)
    ends = ENDED * len({(e.line.id, e.against.id) for e in ended}) + (0.55 if ended else 0)
    legend = style.legend_width([row.label for row in figure.rows])
    names = 0.06 * max((len(_compared(ending)) for ending in ended), default=0)
    width, height = legend + names + 3.4 * max(across, 1.4), down * LINE + ends
    caption = figure.caption(_says(figure, found, ended))
    page = style.page(width, height, figure.title, caption, right=legend, h_pad=0.06, wspace=0.05)
    ratios = [LINE] * down + ([ends] if ended else [])
    axes = page.figure.subplots(len(ratios), across, squeeze=False, height_ratios=ratios)
    for place, panel in enumerate(figure.panels):
        _panel(axes[place // across, place % across], panel, [curve for curve in found if curve.panel == panel])
    for spare in range(len(figure.panels), down * across):
        axes[spare // across, spare % across].set_visible(False)
    for place, panel in enumerate(figure.panels if ended else []):
        above = axes[0, place]
        _ends(axes[-1, place], above, [e for e in ended if e.panel == panel], figure, first=place == 0)
    style.legend_beside(page, max(axes.flat, key=lambda axis: len(axis.get_legend_handles_labels()[1])))
    return page.figure


def _panel(axis: Axes, panel: CurvePanel, found: list[Curve]) -> None:
    """Means as lines; thin upright strokes are from the lowest to the highest of seeds and samples."""
    for place, curve in enumerate(found):
        mean = curve.mean()
        if curve.line.level:
            axis.axhline(mean[0], color=SOFT, linewidth=1.2, linestyle=(0, (4, 3)), label=curve.line.label, zorder=2)
            continue
        # What has no pre-training is dashed.
        look = style.line_look(place) | ({"linestyle": "--"} if curve.line.role in ("none", "control") else {})
        every = curve.values.reshape(-1, curve.values.shape[-1])
        if len(every) > 1:
            axis.vlines(curve.x, every.min(0), every.max(0), color=look["color"], linewidth=0.9, alpha=0.55, zorder=2)
        axis.plot(curve.x, mean, linewidth=1.8, markersize=5, label=curve.line.label, zorder=3, **look)
    axis.set_title(panel.label, loc="left", fontsize=10, fontweight="bold", color=INK)
    axis.set_xlabel(OVER[panel.over], color=SOFT, fontsize=8.5)
    _scale(axis, panel, found)
    style.plain_axis(axis)


def _scale(axis: Axes, panel: CurvePanel, found: list[Curve]) -> None:
    """Passages from nought; queries and operations on a logarithmic axis."""
    thousands = FuncFormatter(lambda value, _: f"{value:,.0f}")
    if panel.over == "passages":
        axis.set_xlim(left=0)
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.xaxis.set_major_formatter(thousands)
        return
    axis.set_xscale("log")
    if panel.over == "queries":
        axis.xaxis.set_major_locator(FixedLocator(sorted({x for c in found if not c.line.level for x in c.x})))
        axis.xaxis.set_major_formatter(thousands)
    else:
        axis.xaxis.set_major_locator(FixedLocator(round_places(*axis.get_xlim())))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: power(value, 1).replace(".0·", "·")))
    axis.xaxis.set_minor_locator(NullLocator())


def round_places(low: float, high: float) -> list[float]:
    """Round numbers between two others, few enough for the labels of a logarithmic axis; both where none is between."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for firsts in ROUND:
        places = [first * 10.0**decade for decade in decades for first in firsts]
        if len(found := [place for place in places if low <= place <= high]) > 1:
            return found[:: -(-len(found) // TICKS)]
    return [low, high]


def _ends(axis: Axes, above: Axes, ended: list[Ending], figure: CurvesSlice, *, first: bool) -> None:
    """One line a comparison: where the advantage ends, with its interval; an arrow where that is beyond the points."""
    low, high = above.get_xlim()
    order = {row.id: place for place, row in enumerate(figure.rows)}
    for place, ending in enumerate(ended):
        colour, at = COLOURS[order[ending.line.id] % len(COLOURS)], ending.crossing
        if np.isnan(at.at):
            axis.text(np.sqrt(low * high), place, "no common range", fontsize=7.5, color=SOFT, ha="center", va="center")
            continue
        if at.low is not None and at.high is not None:
            axis.plot(np.clip([at.low, at.high], low, high), [place, place], color=colour, linewidth=1.6, alpha=0.6)
        marker = {float("inf"): ">", float("-inf"): "<"}.get(at.at, "o")
        axis.plot(np.clip(at.at, low * 1.02, high / 1.02), place, marker, color=colour, markersize=5.5, clip_on=False)
    names = [_compared(ending) for ending in ended]
    axis.set_yticks(range(len(ended)), names if first else [""] * len(ended), fontsize=7.5, color=INK)
    axis.set_ylim(len(ended) - 0.4, -0.6)
    axis.set_xscale(above.get_xscale())  # as above; sharing an axis that is logarithmic already leaves this one linear
    axis.set_xlim(low, high)
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_title("Where the advantage ends", loc="left", fontsize=9, color=INK)
    style.plain_axis(axis)
    axis.tick_params(labelbottom=False)


def _compared(ending: Ending) -> str:
    return f"{ending.line.label} − {ending.against.label}"


def _says(figure: CurvesSlice, found: list[Curve], ended: list[Ending]) -> str:
    """The text of the caption: counts of queries, seeds and samples, and how to read the lower panels."""
    answered = {curve.panel.split: len(curve.clusters) for curve in found}
    queries = ", ".join(f"{count:,} queries of split {split}" for split, count in answered.items())
    seeds = {seed for curve in found for seed in curve.seeds if seed is not None}
    samples = max(len(curve.samples) for curve in found)
    mean = f"mean of {samples} samples of training queries; " if samples > 1 else ""
    text = f"{figure.dataset}: {queries}; {mean}{len(seeds)} seed{'s' * (len(seeds) != 1)}."
    if samples * len(seeds) > 1:
        text += " Upright strokes: from the lowest to the highest of them."
    if not ended:
        return text
    text += " Below: where a mean curve last falls to the other one, straight between points over the logarithm; > is"
    text += " still ahead at the end, < nowhere ahead."
    intervals = "Bars and brackets: 95 % intervals over queries and seeds."
    if len(seeds) < ENOUGH_SEEDS:
        intervals = f"An interval needs {ENOUGH_SEEDS} seeds."
    return " ".join([text, intervals, *sentences([ending.told() for ending in ended])])

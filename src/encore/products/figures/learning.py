"""The curves of pre-training: how each step's losses on held-out texts fell, relative to where they started."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from encore.errors import EncoreError
from encore.products.figures import style
from encore.products.figures.base import StepModels, StepsSlice
from encore.products.figures.style import GRID, INK, SOFT
from encore.products.slices import about_data
from encore.products.tables.sources.pretraining import HELD_OUT, read_loss_table
from encore.storage.csv_rows import number, write_rows

# Told apart by colour-blind eyes too where few meet in a panel; a term has one colour in all panels.
COLOURS = ("#2f6690", "#c4752a", "#1b7f5c", "#8f4f8f", "#b5472f", "#3a9aa8", "#8a6d1f", "#5f6bbd", "#a8456f", "#6b7680")
ACROSS = 4  # panels
WIDE, TALL, LINE = 3.0, 1.75, 0.17  # inches: a panel, it without the text above, a line of that
LONGEST = 34  # letters of a title that fit a panel
HIGHEST = 1.25  # of the start; a loss that rises further leaves the panel
COLUMNS = {
    "step": "The pre-training step.",
    "lineage": "The lineage that ends with it.",
    "seed": "The seed.",
    "training_step": "Optimiser steps so far.",
    "term": "The term of the loss.",
    "value": "Its value, in nats for cross-entropies.",
}


@dataclass(frozen=True)
class LossTerm:
    """A term of a step's loss over the training: ``values`` [seeds, points]."""

    name: str
    values: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Over seeds [points]."""
        return np.mean(self.values, axis=0)

    def starts_above_zero(self) -> bool:
        """Whether its changes can be given as shares of the start."""
        return bool((self.values[:, 0] > 0).all())


@dataclass(frozen=True)
class LossCurves:
    """The learning curves of one step: ``at`` [points] are training steps, from 0 (before the first) to the last.

    A step with too few texts to hold any out has no points and no terms.
    """

    step: StepModels
    at: np.ndarray
    terms: list[LossTerm]

    def drawn(self) -> list[LossTerm]:
        """The terms that make up the loss; where none is recorded, the loss itself."""
        parts = [term for term in self.terms if term.name != "loss" and "accuracy" not in term.name]
        return parts or [term for term in self.terms if term.name == "loss"]


def write_loss_curves(path: Path, curves: Sequence[LossCurves]) -> None:
    """All numbers as data: one line a value, in the order of the steps, seeds, training steps and terms."""
    rows = [
        [one.step.step, one.step.lineage, str(seed.seed), str(at), term.name, number(float(term.values[row, column]))]
        for one in curves
        for row, seed in enumerate(one.step.seeds)
        for column, at in enumerate(one.at)
        for term in one.terms
    ]
    write_rows(path, COLUMNS, rows)


def read_loss_curves(step: StepModels) -> LossCurves:
    """The curves of a step under all its seeds, whose models must have recorded the same terms at the same steps."""
    paths = [Path(seed.model) / HELD_OUT for seed in step.seeds]
    tables = [read_loss_table(path) for path in paths]
    names, first = tables[0]
    for path, (others, points) in zip(paths, tables, strict=True):
        if others != names or not np.array_equal(points[:, 0], first[:, 0]):
            raise EncoreError(f"{path} has other columns or steps than {paths[0]}; run snakemake for both models again")
    values = np.stack([points for _, points in tables])
    terms = [LossTerm(name, values[:, :, place]) for place, name in enumerate(names) if place > 0]
    return LossCurves(step, first[:, 0].astype(int), terms)


def draw_learning(folder: Path, steps: StepsSlice, _: Path) -> str:
    """Write ``<name>.png``, ``.svg`` and ``.csv``; equal numbers give equal bytes."""
    curves = [read_loss_curves(step) for step in steps.rows]
    write_loss_curves(folder / f"{steps.name}.csv", curves)
    with style.style():
        style.save(_figure(steps, curves), folder, steps.name)
    return f"figure {steps.name}: {folder / steps.name}.png"


def _figure(steps: StepsSlice, curves: list[LossCurves]) -> Figure:
    """Panels in the order of the tables, row by row, on a common axis of what is left of each term."""
    across = min(ACROSS, len(curves))
    rows = [curves[first : first + across] for first in range(0, len(curves), across)]
    lines = [max(1, *(len(one.drawn()) for one in row)) for row in rows]
    width = 0.6 + WIDE * max(across, 1.5)
    height = math.fsum(TALL + LINE * (count + 1) for count in lines)
    page = style.page(width, height, steps.title, _caption(steps, curves), h_pad=0.07, wspace=0.03)
    axes = page.figure.subplots(len(rows), across, squeeze=False, sharey=True)
    shares = _shares(curves)
    low, high = min([0.9, *shares]), min(max([1.0, *shares]), HIGHEST)
    axes[0, 0].set_ylim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    names = dict.fromkeys(term.name for one in curves for term in one.drawn())
    colours = dict(zip(names, cycle(COLOURS), strict=False))
    for place, one in enumerate(curves):
        axis, count = axes[place // across, place % across], lines[place // across]
        _frame(axis, one, count, first=place % across == 0, last=place + across >= len(curves))
        for line, term in enumerate(one.drawn()):
            _draw_term(axis, one.at, term, colours[term.name])
            _write_term(axis, term, colours[term.name], _points(count - 1 - line))
    for axis in axes.ravel()[len(curves) :]:
        axis.set_visible(False)
    return page.figure


def _frame(axis: Axes, one: LossCurves, lines: int, *, first: bool, last: bool) -> None:
    """Everything of a panel but its terms; the first of a row and the last of a column say what the axes are."""
    size = min(10.0, 10.0 * LONGEST / len(one.step.label))
    title: dict[str, Any] = {"fontsize": size, "fontweight": "bold", "color": INK}
    axis.annotate(one.step.label, (0, 1), (0, _points(lines) + 2), "axes fraction", "offset points", **title)
    axis.axhline(1, color=SOFT, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    axis.grid(axis="y", color=GRID, linewidth=0.7)
    axis.set_axisbelow(True)
    axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axis.tick_params(length=0, labelsize=8, labelcolor=SOFT, labelleft=first)
    axis.spines[["top", "right", "left"]].set_visible(False)
    if not one.drawn():
        axis.set_xticks([])
        axis.text(0.5, 0.5, "too few texts to hold any out", transform=axis.transAxes, ha="center", color=SOFT)
        return
    if last:
        axis.set_xlabel("training step", fontsize=8.5, labelpad=-7.5, color=SOFT)
    end = max(int(one.at[-1]), 1)
    axis.set_xlim(-0.02 * end, 1.03 * end)
    axis.set_xticks([0, end], ["0", f"{end:,}"])
    axis.xaxis.get_major_ticks()[-1].label1.set_horizontalalignment("right")


def _draw_term(axis: Axes, at: np.ndarray, term: LossTerm, colour: str) -> None:
    """A term's share of its start: a thin line for each seed, a thick one for their mean, or the one seed's."""
    if not term.starts_above_zero():
        return
    if len(term.values) > 1:
        for values in term.values:
            axis.plot(at, values / values[0], color=colour, linewidth=0.7, alpha=0.5, zorder=2)
    mean = term.mean / term.mean[0]
    axis.plot(at, mean, color=colour, linewidth=2, solid_capstyle="round", solid_joinstyle="round", zorder=3)
    axis.plot(at[-1], mean[-1], "o", color=colour, markersize=4.5, zorder=4)


def _write_term(axis: Axes, term: LossTerm, colour: str, above: float) -> None:
    """One line over the panel, that many points above it: the term, its first and last mean, and the change."""
    first, last = float(term.mean[0]), float(term.mean[-1])
    scale = max(first, last, key=abs)
    change = percent(last / first - 1) if term.starts_above_zero() else brief(last - first, scale, "+")
    parts: list[tuple[float, str, dict[str, Any]]] = [
        (0.0, term.name.replace("_", " "), {"ha": "left", "fontweight": "bold", "color": colour}),
        (0.8, f"{brief(first, scale)} → {brief(last, scale)}", {"ha": "right", "color": SOFT}),
        (1.0, change, {"ha": "right", "fontweight": "bold", "color": INK}),
    ]
    for across, text, look in parts:
        axis.annotate(text, (across, 1), (0, above), "axes fraction", "offset points", fontsize=8.5, **look)


def _points(lines: int) -> float:
    """How far above a panel the text begins that has that many lines under it."""
    return 5 + 72 * LINE * lines


def brief(value: float, like: float, sign: str = "") -> str:
    """A number with as many digits after the point as show three of ``like``."""
    digits = 2 - int(np.floor(np.log10(abs(like)))) if like else 2
    return f"{value:{sign},.{min(max(digits, 0), 4)}f}".replace("-", "−")


def percent(share: float) -> str:
    """A change with its sign, in whole percents, or tenths where it is less than one."""
    digits = 0 if abs(share) >= 0.00995 else 1
    text = f"{100 * share:+.{digits}f}".replace("-", "−")
    return "0 %" if text.strip("+−0.") == "" else f"{text} %"


def _shares(curves: Sequence[LossCurves]) -> list[float]:
    """All that is drawn, as shares of the starts."""
    terms = [term for one in curves for term in one.drawn() if term.starts_above_zero()]
    return [float(share) for term in terms for share in (term.values / term.values[:, :1]).ravel()]


def _caption(steps: StepsSlice, curves: Sequence[LossCurves]) -> str:
    """What was measured, how to read the lines, and what they do not show."""
    seeds = len({seed.seed for row in steps.rows for seed in row.seeds})
    terms = [term for one in curves for term in one.drawn()]
    lines = "thin, a seed; thick, the mean of seeds" if seeds > 1 else "one seed"
    return (
        "Each objective’s own terms on examples that it never trains on, with the same masks and spans at every point, "
        f"as a share of their values before the first step (lines: {lines}). Numbers: first → last value, and the "
        "change. Terms of different kinds do not compare: read a panel for whether, how fast and until when a step "
        "learns, not for which step is best. "
        + ("A contrast of bounded similarities cannot reach 0. " if any("contrast" in t.name for t in terms) else "")
        + ("A term that starts at 0 has no line. " if not all(t.starts_above_zero() for t in terms) else "")
        + ("A line that leaves its panel rises further. " if max([1.0, *_shares(curves)]) > HIGHEST else "")
        + about_data(steps.proxy_data)
    )

"""The numbers of a figure of curves: where each point lies, what was measured there, and where advantages end."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.evaluation.scores import exact_mean
from encore.products.figures.base import FigureSlice
from encore.products.figures.crossover import Crossing, Floats, with_interval
from encore.products.slices import SlicePart
from encore.storage import manifest

STATISTICS = "statistics.json"


class CurvePoint(SlicePart):
    """A measured panel of a line at one size, under one seed and one sample of training queries.

    It lies where ``run`` searched so many passages, or ``queries`` of the collection (all where null) trained
    ``models``; a level lies nowhere.
    """

    measured: int
    seed: int | None
    sample: int = 0
    size: int | float | str
    scores: str
    run: str | None = None
    queries: int | None = None
    train_split: str = ""
    collection: str | None = None
    models: list[str] = []


class CurveLine(SlicePart):
    """A line of the figure: the system that it shows, and its points in every panel."""

    id: str
    label: str
    system: str
    role: str = "baseline"
    points: list[CurvePoint]

    @property
    def level(self) -> bool:
        """Whether nothing of it depends on x."""
        return all(point.seed is None for point in self.points)


class CurvePanel(SlicePart):
    """A panel of the figure: the measure of a split on its y axis, and what its x axis counts (``over``)."""

    label: str
    split: str
    measure: str
    measured: int
    over: Literal["passages", "queries", "operations"]


class CurvesSlice(FigureSlice):
    """What a figure of curves is made of."""

    rows: list[CurveLine]
    panels: list[CurvePanel]
    crossover: list[str] = []

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Folders that the points are computed from.

        Returns:
            The files that are read, by folder: None for all of them, none for the manifest alone.
        """
        points = [point for row in self.rows for point in row.points]
        found: dict[Path, Sequence[str] | None] = {Path(point.scores): None for point in points}
        found |= {Path(point.run): () for point in points if point.run}
        found |= {Path(point.collection): (STATISTICS,) for point in points if point.collection}
        return found | {Path(model): () for point in points for model in point.models}


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


def curves(figure: CurvesSlice) -> list[Curve]:
    """Every line in every panel."""
    return [_curve(line, panel) for panel in figure.panels for line in figure.rows]


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
    """Where a point lies.

    Raises:
        EncoreError: a model did not say what it cost.
    """
    if point.seed is None:
        return 0.0
    match panel.over:
        case "passages":
            return float(manifest.read_results(str(point.run))["passages"])
        case "queries":
            return float(_training_queries(point))
        case "operations":
            return sum(float(manifest.read_results(model)["flops"]) for model in point.models)


def _training_queries(point: CurvePoint) -> int:
    """As many as were asked for, or all that the collection has."""
    path = Path(str(point.collection)) / STATISTICS
    try:
        there = int(json.loads(path.read_text())["splits"][point.train_split]["queries"])
    except (OSError, ValueError, KeyError) as error:
        raise EncoreError(f"{path} does not count the queries of {point.train_split!r} ({error})") from error
    return there if point.queries is None else min(point.queries, there)


@cache
def _scores(folder: str) -> scores.Scores:
    return scores.read_scores(Path(folder))

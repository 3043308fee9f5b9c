"""The numbers of a figure of curves: the place of each point, what was measured there, and where advantages end."""

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from encore.errors import EncoreError
from encore.evaluation import scores
from encore.evaluation.scores import exact_mean
from encore.products.figures.crossover import AdvantageEnd, Crossing, Floats, with_interval
from encore.products.figures.curves import STATISTICS, CurveLine, CurvePanel, CurvePoint, CurvesSlice
from encore.storage import manifest


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
    """The place of a point on the x axis.

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
            return math.fsum(float(manifest.read_results(model)["flops"]) for model in point.models)


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

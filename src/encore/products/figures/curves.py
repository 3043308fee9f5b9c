"""Curves of kinds ``growth`` and ``labels``: the slice of the plan that they are drawn from, and their points."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from encore.products.figures.base import DrawnRow, FigurePoint, FigureSlice, PointAxes, Points
from encore.products.slices import Read, SlicePart
from encore.products.tables.grid import CellRequest

STATISTICS = "statistics.json"
COLUMNS = {
    "what": "`value`, or `crossover` for where an advantage ends.",
    "label": "The line.",
    "system": "The system.",
    "panel": "The panel.",
    "split": "The split.",
    "measure": "The measure.",
    "over": "What `x` counts: `passages`, `queries` of training, or `operations`.",
    "seed": "The seed.",
    "sample": "The sample of training queries.",
    "size": "The point on the line.",
    "x": "Its place; empty for a horizontal line.",
    "value": "The mean over queries; of a crossover, empty.",
    "against": "The line whose advantage ends.",
    "low": "Lower end of the interval of the crossover's place.",
    "high": "Upper end of the interval of the crossover's place.",
}


class CurvePoint(SlicePart):
    """A measured panel of a line at one size, under one seed and one sample of training queries.

    Its x counts what ``run`` searched, or the ``queries`` of the collection (all if null) that trained ``models``, or
    their operations; a level has none.
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


class CurveLine(DrawnRow):
    """A line of the figure: the system that it shows, and its points in every panel."""

    id: str
    role: str = "baseline"
    points: list[CurvePoint]

    @property
    def level(self) -> bool:
        """True if it does not depend on x."""
        return all(point.seed is None for point in self.points)


class CurvePanel(SlicePart):
    """A panel of the figure: the measure of a split on its y axis, and what its x axis counts (``over``)."""

    label: str
    split: str
    measure: str
    measured: int
    over: Literal["passages", "queries", "operations"]


class CurvesSlice(FigureSlice):
    """What curves are drawn from."""

    rows: list[CurveLine]
    panels: list[CurvePanel]
    crossover: list[str] = []
    samples: list[int] = []

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Folders that the points are computed from."""
        points = [point for row in self.rows for point in row.points]
        found: dict[Path, Sequence[str] | None] = {Path(point.scores): None for point in points}
        found |= {Path(point.run): () for point in points if point.run}
        found |= {Path(point.collection): (STATISTICS,) for point in points if point.collection}
        return found | {Path(model): () for point in points for model in point.models}


def points(figure: CurvesSlice, axes: PointAxes, place: Callable[[Any], str]) -> Points:
    """The mean over samples of queries; what is trained on nothing is the same at every place.

    Args:
        place: the name of a point's size.
    """
    panels = {panel.measured: panel for panel in figure.panels}
    found: dict[FigurePoint, dict[int, list[CurvePoint]]] = {}
    for row in figure.rows:
        for point in row.points:
            for at in axes.places if point.seed is None else [place(point.size)]:
                samples = found.setdefault(FigurePoint(panels[point.measured].label, row.id, at), {})
                samples.setdefault(point.sample, []).append(point)
    for where, samples in found.items():
        yield where, [_part(figure, panels[own[0].measured], own) for own in samples.values()]


def _part(figure: CurvesSlice, panel: CurvePanel, points: list[CurvePoint]) -> CellRequest:
    reads = [Read(seed=point.seed, folder=point.scores) for point in points]
    return CellRequest(value=panel.measure, split=panel.split, dataset=figure.dataset, reads=reads)

"""A figure as claims see it: its lines under each panel are rows, the places of its points are columns.

``kept`` names whatever the catalogue's entry has besides what the run draws, so that a claim may be about a point that
a run leaves out.
"""

from collections.abc import Iterator

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.figures.base import FigureEntry, FigurePoint, PointAxes
from encore.products.figures.kinds import KINDS
from encore.products.figures.plan import figure_plan
from encore.products.slices import NOT_DRAWN, Axis, Shape
from encore.products.tables.grid import CellRequest
from encore.products.tables.sources.kinds import TESTED


def shape(drawn: PointAxes, kept: PointAxes | None = None) -> Shape:
    """The rows and columns that a claim may name; one that names no column is about those in the picture."""
    more = kept or drawn
    places = dict.fromkeys([*drawn.places, *more.places])
    lines = [(panel, line) for panel in drawn.panels | more.panels for line in drawn.lines | more.lines]
    return Shape(
        rows=[Axis(id=line, setting=panel, source=TESTED) for panel, line in lines],
        columns=[Axis(id=place, hidden=place not in drawn.places, source=TESTED) for place in places],
    )


def shapes(figures: dict[str, FigureEntry]) -> dict[str, Shape]:
    """Of the catalogue's figures that have points, by name."""
    return {name: shape(axes) for name, entry in figures.items() if (axes := entry.axes())}


def figure_shape(plan: Plan, name: str) -> Shape:
    """A figure's shape under this run."""
    return shape(plan.resolve.figure(name).axes(), plan.catalogue.figures[name].axes())


def figure_cells(plan: Plan, name: str) -> dict[FigurePoint, list[CellRequest]]:
    """What each point of a figure is the mean of, each part with what is requested of which folders, by seed."""
    figure, axes = figure_plan(plan, name), plan.resolve.figure(name).axes()
    points = KINDS[figure.kind].points
    if axes is None or points is None:
        raise EncoreError(f"figure {name!r} is a picture without points")
    return dict(points(figure, axes))


def gaps(plan: Plan, name: str) -> Iterator[tuple[FigurePoint, str]]:
    """The points of a figure that have no value here, each with the reason."""
    here, found, entry = figure_cells(plan, name).keys(), figure_shape(plan, name), plan.resolve.figure(name)
    splits, systems, _ = entry.axes()
    for row in found.rows:
        split = splits.get(row.setting)
        absent = plan.resolve.datasets.absence(entry.dataset, split) if split else None
        why = absent or (plan.resolve.missing_start(systems[row.id]) if row.id in systems else None) or NOT_DRAWN
        for column in found.columns:
            if (at := FigurePoint(row.setting, row.id, column.id)) not in here:
                yield at, NOT_DRAWN if column.hidden else why

"""A figure as claims see it: its lines under each panel are rows, the places of its points are columns.

``kept`` names whatever the catalogue's entry has besides what the run draws, so that a claim about a point that a run
leaves out is no mistake.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.figures.entries import FigureEntry, PointAxes
from encore.products.figures.plan import figure_plan
from encore.products.slices import NOT_DRAWN, Axis, Shape
from encore.products.tables.entries import TESTED


class FigurePoint(NamedTuple):
    """A line under a panel at a place."""

    panel: str
    line: str
    place: str


def shape(drawn: PointAxes, kept: PointAxes | None = None) -> Shape:
    """The rows and columns that a claim may name; one that names no column is about those in the picture."""
    more = kept or drawn
    panels, lines = (list(dict.fromkeys([*ours, *theirs])) for ours, theirs in zip(drawn[:2], more[:2], strict=True))
    places = dict.fromkeys([*drawn.places, *more.places])
    return Shape(
        rows=[Axis(id=line, setting=panel, source=TESTED) for panel in panels for line in lines],
        columns=[Axis(id=place, hidden=place not in drawn.places, source=TESTED) for place in places],
    )


def shapes(figures: dict[str, FigureEntry]) -> dict[str, Shape]:
    """Of the catalogue's figures that have points, by name."""
    return {name: shape(axes) for name, entry in figures.items() if (axes := entry.axes())}


def figure_shape(plan: Plan, name: str) -> Shape:
    """A figure's shape under this run.

    Raises:
        EncoreError: the run scales it wrongly.
    """
    return shape(plan.resolve.figure(name).axes(), plan.catalogue.figures[name].axes())


def figure_cells(plan: Plan, name: str) -> dict[FigurePoint, list[dict[str, Any]]]:
    """What each point of a figure is the mean of, each part with what is requested of which folders, by seed.

    Raises:
        EncoreError: the figure has no points, or cannot be had under this run.
    """
    content, axes = figure_plan(plan, name), plan.resolve.figure(name).axes()
    if axes is None:
        raise EncoreError(f"figure {name!r} is a picture without points")
    return dict(_inspected(content, axes) if content["kind"] == "coverage" else _scored(content, axes))


def gaps(plan: Plan, name: str) -> Iterator[dict[str, str]]:
    """The points of a figure that have no value here, each with the reason.

    Raises:
        EncoreError: as ``figure_cells``.
    """
    here, found, entry = figure_cells(plan, name).keys(), figure_shape(plan, name), plan.resolve.figure(name)
    panels = {panel.label: panel.split for panel in getattr(entry, "panels", [])}
    systems = getattr(entry, "systems", None) or {each.id: each.system for each in entry.lines} | entry.levels
    for row in found.rows:
        absent = plan.resolve.datasets.absence(entry.dataset, panels[row.setting]) if row.setting in panels else None
        why = absent or (plan.resolve.missing_start(systems[row.id]) if row.id in systems else None) or NOT_DRAWN
        for column in found.columns:
            if FigurePoint(row.setting, row.id, column.id) not in here:
                reason = NOT_DRAWN if column.hidden else why
                yield {"table": name, "setting": row.setting, "row": row.id, "column": column.id, "why": reason}


def _scored(content: dict[str, Any], axes: PointAxes) -> Iterator[tuple[FigurePoint, list[dict[str, Any]]]]:
    """Points of measures: the mean over samples of queries; what is trained on nothing is the same at every place."""
    panels = {panel["measured"]: panel for panel in content["panels"]}
    found: dict[FigurePoint, dict[int, list[dict[str, Any]]]] = {}
    for row in content["rows"]:
        for point in row["points"]:
            level, panel = point["seed"] is None, panels[point["measured"]]
            at = axes.places if level else [_place(content["kind"], point["size"], axes)]
            read = {"seed": point["seed"], "folder": point["scores"]}
            for place in at:
                samples = found.setdefault(FigurePoint(panel["label"], row["id"], place), {})
                samples.setdefault(point.get("sample", 0), []).append(read)
    by_label = {panel["label"]: panel for panel in content["panels"]}
    for where, samples in found.items():
        about = {"value": by_label[where.panel]["measure"], "split": by_label[where.panel]["split"]}
        yield where, [about | {"dataset": content["dataset"], "reads": reads} for reads in samples.values()]


def _place(kind: str, size: Any, axes: PointAxes) -> str:
    return axes.places[size] if kind == "labels" else str(size)


def _inspected(content: dict[str, Any], axes: PointAxes) -> Iterator[tuple[FigurePoint, list[dict[str, Any]]]]:
    """Points of an inspection: a share for each seed."""
    for row in content["rows"]:
        for panel in axes.panels:
            for place in axes.places:
                yield FigurePoint(panel, row["label"], place), [{"value": panel, "reads": row["inspections"]}]

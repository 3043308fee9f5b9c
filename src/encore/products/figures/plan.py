"""The slice of a figure: what it draws, of which folders, with everything of its entry that drawing needs.

The figure of the pre-training steps has no entry: it shows those of the tables.

As claims see a figure, its lines under each panel are rows, and the places of its points are columns. ``kept`` names
whatever the catalogue's entry has besides what the run draws, so that a claim may be about a point that a run leaves
out.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from encore.config.validation import explained, nearest
from encore.errors import EncoreError
from encore.plan.lineage import Lineage, parse, split_index
from encore.plan.plan import Plan
from encore.products.figures.base import (
    LEARNED,
    FigureEntry,
    FigurePoint,
    FigureSlice,
    PointAxes,
    SeedModel,
    StepModels,
    StepsSlice,
)
from encore.products.figures.kinds import KINDS
from encore.products.slices import NOT_DRAWN, Axis, Shape, paper_of, titled
from encore.products.tables.grid import CellRequest
from encore.products.tables.plan import CURVES, table_plan
from encore.products.tables.sources.base import pretrained
from encore.products.tables.sources.kinds import TESTED

# What was found for each plan: every wildcard of the workflow requests a slice again.
_known: WeakKeyDictionary[Plan, dict[str, FigureSlice]] = WeakKeyDictionary()
_steps: WeakKeyDictionary[Plan, StepsSlice] = WeakKeyDictionary()


def figure_plan(plan: Plan, name: str) -> FigureSlice:
    """The slice of a figure: ``rows``, each with its label and the folders that it reads, and its appearance."""
    known = _known.setdefault(plan, {})
    if name not in known:
        known[name] = _slice(plan, name)
    return known[name]


def curves_plan(plan: Plan) -> StepsSlice:
    """Every pre-training step of the declared tables, in their order, with its models; no rows where there is none.

    A step is known by the lineage that ends with it. It is called as the table calls it; where rows disagree, by the
    step's name; and by its lineage where two steps would be called alike.
    """
    if plan not in _steps:
        _steps[plan] = _curves(plan)
    return _steps[plan]


def _curves(plan: Plan) -> StepsSlice:
    labels = _labels_of_steps(plan)
    titles = {last: next(iter(given)) if len(given) == 1 else str(last.steps[-1]) for last, given in labels.items()}
    times = Counter(titles.values())
    rows = [
        StepModels(
            label=title if times[title] == 1 else str(last),
            step=str(last.steps[-1]),
            lineage=str(last),
            seeds=[SeedModel(seed=seed, model=plan.model(last, seed).folder) for seed in plan.config.seeds],
        )
        for last, title in titles.items()
    ]
    title = titled(LEARNED, plan.config)
    more: dict[str, Any] = {"title": title} if title != LEARNED else {}
    return StepsSlice(name=CURVES, rows=rows, proxy_data=plan.config.proxy_data, **more)


def _slice(plan: Plan, name: str) -> FigureSlice:
    known = plan.catalogue.figures
    if name not in known:
        raise EncoreError(f"figures: no figure {name!r} in config/papers{nearest(name, known)}")
    entry = plan.resolve.figure(name)
    with explained(f"figure {name!r}"):
        content = KINDS[entry.kind].plan(plan, entry)
    read = [plan.made[folder] for row in content.rows for folder in row.reads]
    notes = [*entry.notes, *content.notes, *plan.resolve.datasets.notes_behind(read)]
    return KINDS[entry.kind].slice(
        name=name.rsplit("/", 1)[-1],
        title=titled(entry.title, plan.config),
        kind=entry.kind,
        paper=paper_of(name),
        rows=content.rows,
        notes=list(dict.fromkeys(notes)),
        proxy_data=plan.config.proxy_data,
        **content.fields,
    )


def _labels_of_steps(plan: Plan) -> dict[Lineage, set[str]]:
    """The label of each pre-training step in tables: a row's label is about the last of its steps, if about any."""
    labels: dict[Lineage, set[str]] = {}
    for row in (row for name in plan.config.tables for row in table_plan(plan, name).rows):
        for system in dict.fromkeys(cell.system for cell in row.cells.values()):
            if not system or system in plan.catalogue.systems:
                continue
            last, (lineage, index) = None, split_index(system)
            for last in pretrained(plan, parse(lineage)):
                labels.setdefault(last, set())
            if last is not None and index is None:  # a row about an index is not called after the step
                labels[last].add(row.label)
    return labels


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
    """The shapes of the catalogue's figures that have points, by name."""
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

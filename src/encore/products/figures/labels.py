"""Retrieval over what a model was fine-tuned on: the number of training queries, or the operations that they cost."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from encore.config.finetuning import FinetuneStep
from encore.config.validation import Strict
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.figures import curves
from encore.products.figures.base import (
    FigureContent,
    FigureEntry,
    FigureKind,
    PanelEntry,
    PointAxes,
    available,
    measured,
)
from encore.products.figures.curves import CurveLine, CurvePanel, CurvePoint
from encore.products.tables.budgets import models_behind

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Page


class LineEntry(Strict):
    """A system at each size; ``{name}`` in it is filled by the size."""

    id: str
    label: str
    system: str
    role: Literal["baseline", "none", "control", "objective"] = "baseline"


class LabelsFigure(FigureEntry):
    """Retrieval against how much a model was fine-tuned: the number of training queries, or what they cost."""

    kind: Literal["labels"]
    lines: list[LineEntry] = Field(min_length=1)
    levels: dict[str, str] = Field({}, description="Systems without training, drawn as level lines, by their labels.")
    dataset: str
    levels_dataset: str = Field(
        "", description="The dataset that the levels are searched in, with the same queries; without it, `dataset`."
    )
    panels: list[PanelEntry] = Field(min_length=1)
    sizes: list[dict[str, str]] = Field(
        min_length=1, description="Values of the placeholders in systems for each size, the smallest size first."
    )
    samples: list[Annotated[int, Field(ge=0)]] = Field(
        [0],
        min_length=1,
        description="The samples of training queries, whose mean is drawn; the placeholder `{sample}` is one of them.",
    )
    across: list[Literal["queries", "operations"]] = Field(
        ["queries"],
        min_length=1,
        description="The x axes of the panels: training queries, or operations of fine-tuning.",
    )
    crossover: list[str] = Field(
        [], description="The ids of lines that each objective is compared with, to find where its advantage ends."
    )

    def axes(self) -> PointAxes:
        """Its panels, lines with constant ones last, and numbers of labels."""
        panels: dict[str, str | None] = {panel.label: panel.split for panel in self.panels}
        lines = {line.id: line.system for line in self.lines} | self.levels
        return PointAxes(panels, lines, [next(iter(size.values())) for size in self.sizes])

    @model_validator(mode="after")
    def _name_each_line_once(self) -> LabelsFigure:
        ids = [line.id for line in self.lines]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"line {name!r} is there twice; give each its own id")
        for name in self.crossover:
            if name not in ids:
                raise ValueError(f"crossover: {name!r} is not a line; lines are {', '.join(ids)}")
        return self


def plan_labels(plan: Plan, figure: LabelsFigure) -> FigureContent:
    """Scores of every line at each size, under each sample and seed, and what its fine-tuning is counted by."""
    panels, absent = measured(plan, figure.dataset, figure.panels)
    called = {line.label: line for line in figure.lines}
    found, notes = available(plan, {line.label: line.system for line in figure.lines})
    levels, without = available(plan, figure.levels)
    rows = [_line(plan, figure, panels, called[label]) for label in found]
    dataset = figure.levels_dataset or figure.dataset
    there, missing = measured(plan, dataset, panels) if levels else ([], [])
    lacking = [f"{', '.join(levels)}: {note}" for note in missing]
    among = {place: panel for place, panel in enumerate(panels) if panel in there}
    rows += [_level(plan, dataset, among, label, system) for label, system in levels.items()]
    shown = [
        CurvePanel(measured=place, over=over, **panel.model_dump())
        for place, panel in enumerate(panels)
        for over in figure.across
    ]
    about = {"panels": shown, "dataset": plan.resolve.dataset(figure.dataset).name, "crossover": figure.crossover}
    return FigureContent(rows, about | {"samples": figure.samples}, [*absent, *notes, *without, *lacking])


def _line(plan: Plan, figure: LabelsFigure, panels: list[PanelEntry], line: LineEntry) -> CurveLine:
    """A line's points: scores, and the queries and models that its fine-tuning is counted by (all queries if null)."""
    points, reads = list[CurvePoint](), list[str]()
    for place, panel in enumerate(panels):
        for (size, filling), sample in product(enumerate(figure.sizes), figure.samples):
            system, step = _trained(plan, line.system, filling, sample)
            about: dict[str, Any] = {"measured": place, "size": size, "sample": sample}
            about |= {"train_split": step.train_split, "queries": step.queries}
            about |= {"collection": plan.collection(step.collection).folder}
            for seed in plan.config.seeds:
                scores = plan.scores(system, seed, figure.dataset, _topics(plan, figure.dataset, panel))
                models = models_behind(scores)["finetune"]
                points.append(CurvePoint(**about, seed=seed, scores=scores.folder, models=models))
                reads += [scores.folder, about["collection"], *models]
    return CurveLine(**line.model_dump(), points=points, reads=list(dict.fromkeys(reads)))


def _level(plan: Plan, dataset: str, panels: dict[int, PanelEntry], label: str, system: str) -> CurveLine:
    """A system without training: one point in each panel that its dataset has, without a place on the x axis."""
    if plan.resolve.has_chance(system):
        raise EncoreError(f"levels: {system!r} is trained; draw it as a line")
    points = [
        CurvePoint(measured=place, seed=None, size=0, scores=plan.scores(system, None, dataset, topics).folder)
        for place, panel in panels.items()
        for topics in [_topics(plan, dataset, panel)]
    ]
    reads = [point.scores for point in points]
    return CurveLine(id=label, label=label, system=system, role="baseline", points=points, reads=reads)


def _trained(plan: Plan, system: str, filling: dict[str, str], sample: int) -> tuple[str, FinetuneStep]:
    """A line's lineage at a size, with its last step, which is of the sample if the step's own is another."""
    try:
        name = system.format(**filling)
    except (KeyError, IndexError, ValueError):
        known = ", ".join(f"{{{name}}}" for name in filling)
        raise EncoreError(f"a size cannot fill {system!r}; it has {known}") from None
    last = plan.resolve.lineage(name).steps[-1]
    step = plan.resolve.step(last)
    if not isinstance(step, FinetuneStep):
        raise EncoreError(f"{name!r} ends with no fine-tuning; let its last step be one")
    if sample == step.sample:
        return name, step
    if "~" in str(last):
        raise EncoreError(f"{name!r} overrides fields already; give its last step an entry of its own in steps.yaml")
    return f"{name}~sample={sample}", step


def _topics(plan: Plan, dataset: str, panel: PanelEntry) -> str:
    return plan.resolve.dataset(dataset).fields.splits[panel.split].topics or panel.split


def draw_labels(figure: curves.CurvesSlice) -> tuple[list[list[str]], Page]:
    """A line of data a point, seed and sample, then the ends of advantages; a panel a measure and what it is over."""
    from encore.products.figures import curve

    return curve.draw(figure)


KIND = FigureKind(
    LabelsFigure,
    plan_labels,
    curves.CurvesSlice,
    curves.COLUMNS,
    draw_labels,
    lambda figure, axes: curves.points(figure, axes, axes.places.__getitem__),
)

"""What a kind of figure consists of, and what all kinds share: fields of entries, systems that a run can have, slices.

A kind is one file with a ``KIND`` and one line in ``kinds.py``. Planning imports these files, so they import matplotlib
and NumPy where they draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import Field

from encore.config.validation import Strict, nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.figures import style
from encore.products.slices import Product, SlicePart, about_data
from encore.products.tables.grid import CellRequest
from encore.products.tables.sources.pretraining import HELD_OUT
from encore.storage.csv_rows import write_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Page

Systems = Annotated[
    dict[str, str], Field(min_length=1, description="The lineages that are drawn, by their labels in the figure.")
]
LEARNED = "What each pre-training step learned: its losses on held-out texts"
DRAWN = {"label": "The model.", "system": "The system.", "seed": "The seed."}  # columns of several kinds


class PointAxes(NamedTuple):
    """The names of a figure's points: each panel with its split, if it has one, each line with its system, and places.

    Places are ordered from the smallest to the largest.
    """

    panels: dict[str, str | None]
    lines: dict[str, str]
    places: list[str]

    def names(self) -> list[list[str]]:
        """All that claims may name."""
        return [list(self.panels), list(self.lines), self.places]


class DrawnRow(SlicePart):
    """What every row of a figure's slice has: its name in the figure, and the folders that it reads."""

    label: str
    system: str
    reads: list[str] = []


class FigureEntry(Strict):
    """The fields of every figure; a run's ``scale.figures`` replaces single ones."""

    title: str
    notes: list[str] = Field([], description="Sentences that are added to the caption.")

    def axes(self) -> PointAxes | None:
        """The names that claims use for its points, or None for a picture without points."""
        return None


class PanelEntry(Strict):
    """A measure of a split, by its printed name there, and what it is called in the figure."""

    label: str
    split: str
    measure: str


@dataclass(frozen=True)
class FigureContent:
    """The rows of a figure, the fields that decide its appearance, and notes for its caption."""

    rows: Sequence[DrawnRow]
    fields: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def available(plan: Plan, systems: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """The systems that this run can have, by label, and a sentence about each of the others."""
    reasons = {label: plan.resolve.missing_start(system) for label, system in systems.items()}
    found = {label: system for label, system in systems.items() if not reasons[label]}
    return found, [f"{label} is not testable here: {reason}." for label, reason in reasons.items() if reason]


def measured(plan: Plan, dataset: str, panels: list[PanelEntry]) -> tuple[list[PanelEntry], list[str]]:
    """The panels whose split this run's dataset has, and a sentence about each of the others."""
    found, notes = [], []
    for panel in panels:
        if reason := plan.resolve.datasets.absence(dataset, panel.split):
            notes.append(f"{panel.label} is not testable here: {reason}.")
            continue
        splits = plan.resolve.dataset(dataset).fields.splits
        if panel.split not in splits:
            name, near = plan.resolve.dataset(dataset).name, nearest(panel.split, splits)
            raise EncoreError(f"dataset {name!r} has no split {panel.split!r}{near}")
        if panel.measure not in (known := splits[panel.split].measures):
            near = nearest(panel.measure, known)
            raise EncoreError(f"{panel.measure!r} is not measured on split {panel.split!r} of {dataset!r}{near}")
        found.append(panel)
    if not found:
        raise EncoreError(f"nothing is left to draw: {notes[0]}")
    return found, notes


class FigureSlice(Product):
    """The fields of every slice of a figure."""

    kind: str
    paper: str = ""
    title: str
    notes: list[str] = []
    dataset: str
    rows: Sequence[DrawnRow]

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """Its rows."""
        return ((row.label, row.reads) for row in self.rows)

    def caption(self, *says: str) -> str:
        """The caption: what the drawing knows, what the plan knows, and whether data are stand-ins."""
        return " ".join(filter(None, [*says, *self.notes, about_data(self.proxy_data)]))


class FigurePoint(NamedTuple):
    """A line under a panel at a place."""

    panel: str
    line: str
    place: str


Points = Iterator[tuple[FigurePoint, list[CellRequest]]]


@dataclass(frozen=True)
class FigureKind:
    """A kind of figure.

    ``plan`` gives the content of an entry under a run. ``draw`` gives, for a slice of the plan, the lines of data under
    ``columns`` (each with its meaning), and the page. ``points`` gives, for a slice and its axes, what each point is
    the mean of: parts, each with the folders that are read by seed; None for a picture without points.
    """

    entry: type[FigureEntry]
    plan: Callable[[Plan, Any], FigureContent]
    slice: type[FigureSlice]
    columns: dict[str, str]
    draw: Callable[[Any], tuple[list[list[str]], Page]]
    points: Callable[[Any, PointAxes], Points] | None = None

    def write(self, folder: Path, figure: FigureSlice) -> None:
        """Write ``<name>.png``, ``.svg`` and ``.csv``; equal inputs give equal bytes."""
        if not figure.rows:
            raise EncoreError(f"{figure.name}: none of its systems can be had under this run's configuration")
        with style.style():
            lines, page = self.draw(figure)
            write_rows(folder / f"{figure.name}.csv", self.columns, lines)
            style.save(page, folder, figure.name)


class SeedModel(SlicePart):
    """The folder of the model that a step ends with, under one seed."""

    seed: int
    model: str


class StepModels(SlicePart):
    """A pre-training step, known by the lineage that ends with it."""

    label: str
    step: str
    lineage: str
    seeds: list[SeedModel]


class StepsSlice(Product):
    """The slice of the figure of all pre-training steps, in the order of the tables."""

    title: str = LEARNED
    rows: list[StepModels]

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """Its steps."""
        return ((row.label, [seed.model for seed in row.seeds]) for row in self.rows)

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Folders of the models whose training losses are read, of each the one file that is read."""
        return {Path(seed.model): (HELD_OUT,) for row in self.rows for seed in row.seeds}

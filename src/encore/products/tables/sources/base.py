"""The interface of a source of a column's values.

A source is a class in a file next to this one and a line in ``kinds.py``. Planning imports these files, so they import
NumPy and what reads scores only where they read values.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from encore.config.entries import PretrainStep
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.lineage import Lineage, split_index
from encore.plan.plan import Plan
from encore.products.slices import Unit
from encore.products.tables.grid import CellRequest, Column, Grid, Row

if TYPE_CHECKING:
    from encore.products.tables.cell_scores import CellScores

Best = Literal["highest", "lowest"] | None
Need = Literal["system", "dataset", "split"]
Parts = Mapping[str, "CellValues | None"]


@dataclass(frozen=True)
class CellValues:
    """A cell's values: one for each seed, or one under no seed if it does not depend on a seed.

    ``ties``: the lowest and highest value over all orders of tied scores. ``queries``: what differences are tested on.
    """

    seeds: list[int | None]
    means: list[float]
    ties: tuple[float, float] | None = None
    queries: CellScores | None = None

    def place(self, seed: int | None) -> int:
        """The place of a seed among the values; what has no chance in it has one value for all seeds."""
        return 0 if self.seeds == [None] else self.seeds.index(seed)

    def under(self, seed: int | None) -> float:
        """The value under a seed."""
        return self.means[self.place(seed)]


class CellSource(ABC):
    """A source of values. It is made once and knows nothing of a table.

    Attributes:
        field: its field of a column's entry: the type, and pydantic's description and default.
        needs: what of a cell it needs.
        files: what it reads of a folder; None for all files.
        best: which of a column's values is set in bold.
        averaged: whether a mean or a gain of such columns can be shown.
        name: what the tidy CSV calls its numbers, under ``measure``: a format of ``value`` and ``column``.
        form: the format of an amount, as people read it.
        amounts: the unit in which they read it; empty for a count.
    """

    field: ClassVar[tuple[Any, Any]]
    needs: ClassVar[tuple[Need, ...]] = ()
    files: ClassVar[tuple[str, ...] | None] = None
    best: ClassVar[Best] = None
    averaged: ClassVar[bool] = False
    name: ClassVar[str] = "{value}"
    form: ClassVar[str] = "{:g}"
    amounts: ClassVar[str] = ""

    def reads(self, plan: Plan, request: CellRequest) -> CellRequest:
        """The request with what it reads; nothing for values that are computed from other cells."""
        return request

    def parts(self, row: Row, column: Column) -> dict[str, tuple[str, str]]:
        """The cells of the row's setting that a value is computed from: row id and column id, by name of the part."""
        return {}

    @abstractmethod
    def values(self, request: CellRequest, parts: Parts) -> CellValues | None:
        """A cell's values, from its folders or from other cells; None if it has none."""

    def queries(self, request: CellRequest) -> CellScores | None:
        """Values of a cell's queries; None for one that is about no queries."""
        return None

    def named(self, request: CellRequest, column: Column) -> str:
        """What the tidy CSV calls it, under ``measure``."""
        return self.name.format(value=request.value, column=column)

    def shown(self, value: float, unit: Unit) -> str:
        """An amount as people read it in a table of that unit."""
        return self.form.format(value)

    def unit(self, request: CellRequest, unit: Unit) -> str:
        """The unit in which people read its amounts in a table of that unit; empty for a count."""
        return self.amounts

    def in_our_unit(self, printed: float, unit: Unit) -> float:
        """A number that a paper prints in a table of that unit, as our values are."""
        return printed

    def notes(self, own: Sequence[Column], grid: Grid) -> list[str]:
        """Notes below a table on how its columns of this source, if any, were measured."""
        return []


class ShareSource(CellSource):
    """Values between 0 and 1, which a table may show in percent: three digits, or two of a percent."""

    best: ClassVar[Best] = "highest"

    def shown(self, value: float, unit: Unit) -> str:
        """A share with two digits in percent, or with three between 0 and 1."""
        return f"{100 * value:.2f}" if unit == "percent" else f"{value:.3f}"

    def unit(self, request: CellRequest, unit: Unit) -> str:
        """The table's own."""
        return unit

    def in_our_unit(self, printed: float, unit: Unit) -> float:
        """A printed number as a share between 0 and 1."""
        return printed / 100 if unit == "percent" else printed


class CountSource(CellSource):
    """One number of one folder, the same under every seed; nothing for a cell without a folder."""

    def values(self, request: CellRequest, parts: Parts) -> CellValues | None:
        """The number, under no seed; None where there is nothing to count."""
        found = self.counted(Path(request.reads[0].folder), request.value) if request.reads else None
        return None if found is None else CellValues([None], [found])

    @abstractmethod
    def counted(self, folder: Path, name: str) -> float | None:
        """The number of that name in a folder."""

    def shown(self, value: float, unit: Unit) -> str:
        """A whole number, or two digits after the point."""
        return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def optional(kind: Any, about: str, pattern: str | None = None) -> tuple[Any, Any]:
    """The field of a source that a column need not have."""
    return kind | None, Field(None, description=f"Or: {about}", pattern=pattern)


def by_seed(request: CellRequest, read: Callable[[Path], float]) -> CellValues | None:
    """The number of each folder of a cell; None without folders."""
    found = [read(Path(each.folder)) for each in request.reads]
    return CellValues([each.seed for each in request.reads], found) if found else None


def number_in(path: Path, name: str) -> float:
    """A number of a JSON file."""
    return float(json.loads(path.read_text())[name])


def lineage_of(plan: Plan, request: CellRequest) -> Lineage | None:
    """The lineage that a cell is about; None for a system that is not a lineage."""
    if request.system in plan.catalogue.systems:
        return None
    return plan.resolve.lineage(split_index(request.system)[0])


def pretrained(plan: Plan, lineage: Lineage) -> list[Lineage]:
    """The beginnings of a lineage that end with a pre-training step."""
    return [
        Lineage(lineage.backbone, lineage.steps[:count])
        for count, step in enumerate(lineage.steps, 1)
        if isinstance(plan.resolve.step(step), PretrainStep)
    ]


def last_pretrained(plan: Plan, request: CellRequest) -> Lineage | None:
    """The lineage of a cell up to its last pre-training step; None if it has none."""
    lineage = lineage_of(plan, request)
    return next(reversed(pretrained(plan, lineage)), None) if lineage else None


def before_finetuning(plan: Plan, request: CellRequest) -> Lineage | None:
    """The lineage of a cell up to its last pre-training step, or its backbone alone; None for no lineage."""
    lineage = lineage_of(plan, request)
    return [Lineage(lineage.backbone), *pretrained(plan, lineage)][-1] if lineage else None


def topics_of(plan: Plan, request: CellRequest) -> str:
    """The split whose queries a run answers for the requested split."""
    dataset = plan.resolve.dataset(request.dataset)
    splits: dict[str, Any] = dataset.fields.splits
    if request.split not in splits:
        fix = f"; if it cannot have one, say why under its `absent:`{nearest(request.split, splits)}"
        raise EncoreError(f"dataset {dataset.name!r} has no split {request.split!r}{fix}")
    return splits[request.split].topics or request.split

"""A row, a column and what is requested of a cell: of a table as it is planned, and as it is made."""

from collections.abc import Iterable, Sequence
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field, model_validator

from encore.config.validation import Strict
from encore.plan.artifact import Artifact
from encore.products.slices import Product, Read, SlicePart

MARKS = 5  # of comparators, as a table has symbols for


class RowFields(BaseModel):
    """What a row is in every form of a table: as it is written, as it is planned, and with its numbers."""

    id: str = Field(description="Its name, unique in its setting.")
    label: str = Field(description="What it is called.")
    setting: str = Field("", description="The group of rows that it belongs to, and is compared within.")
    system: str = Field("", description="The system that is evaluated: an entry of systems.yaml, or a lineage.")
    role: Literal["baseline", "none", "control", "objective"] = Field(
        "baseline", description="What the row is to the tests: baseline, none, control or objective."
    )
    reported_only: str = Field("", description="Whose printed numbers the row shows instead of running a system.")


class GainEntry(Strict):
    """The difference of a row to another row of its setting, under a column."""

    of: str = Field(description="The id of the column whose difference is shown.")
    over: str = Field(description="The id of the row that the difference is to.")


class ColumnFields(BaseModel):
    """What a column is in every form of a table."""

    id: str = Field(description="Its name, unique in its table.")
    label: str = Field(description="Its title.")
    mean_of: list[str] = Field([], description="Or: the mean of other columns, by id, for each seed.")
    gain: GainEntry | None = Field(None, description="Or: the difference of the row to another row under a column.")
    hidden: bool = Field(False, description="Whether the column is in the data only, for a mean of columns.")
    primary: bool = Field(False, description="Whether verdicts rest on it.")


class Significance(Strict):
    """Which rows of the same setting each row is compared with, and how a family of tests is corrected."""

    comparators: list[str] = Field(max_length=MARKS)
    family: Literal["holm"] = "holm"
    printed: dict[str, str | list[str]] = Field(
        {},
        description="The paper's own significance markers, each with the comparator, or comparators, that it is about.",
    )
    margin: float | None = Field(
        None,
        gt=0,
        description="What a row's differences to none and control must be smaller than, in the measure's own unit (0 "
        "to 1), for the verdict `equivalent within …`; without it there is no such verdict.",
    )
    crossed: bool = Field(
        False,
        description="Whether the table is refused unless the trials in config/tuning show that each row chose its "
        "rates from as many, of fine-tuning with its own of pre-training; without it, a note says where they do not.",
    )

    def meant(self) -> dict[str, list[str]]:
        """The comparators that a row with each of the paper's markers is above, all of them."""
        return {symbol: [rows] if isinstance(rows, str) else rows for symbol, rows in self.printed.items()}

    @model_validator(mode="after")
    def _mark_comparators(self) -> "Significance":
        for symbol, rows in self.meant().items():
            for row in rows:
                if row not in self.comparators or len(symbol) != 1:
                    raise ValueError(f"printed: {symbol!r} is not one character for one of the comparators, {row!r}")
        return self


class CellRequest(SlicePart):
    """What of its column's source a cell shows (a measure by its short name in the scores), and where it is.

    Without ``reads`` it only shows what the paper printed, if anything. ``reported`` are the columns and entries that
    identify its number in the file of reported ones. ``not_applicable`` and ``absent`` are the reasons why the row, or
    this run, cannot have such a number.
    """

    value: str = ""
    system: str = ""
    dataset: str = ""
    split: str = ""
    expression: str = ""  # the measure in full, as ir-measures writes it
    collection: str = ""  # named with its digest
    unseen: bool = False  # whether it is about those queries alone that training has not met
    reads: list[Read] = []
    record: str = ""  # or a file of the user's
    reported: dict[str, str] = {}
    not_applicable: str = ""
    absent: str = ""

    def reading(
        self, found: Iterable[tuple[int | None, Artifact]], collection: Artifact | None = None, **more: str
    ) -> "CellRequest":
        """The same with the artifacts that it reads, by seed, and the collection that they are about."""
        reads = [Read(seed=seed, folder=artifact.folder) for seed, artifact in found]
        about: dict[str, Any] = {"reads": reads, "collection": collection.name if collection else ""}
        return self.model_copy(update=about | more)


Origin = Literal["run", "run from released weights", "run of others", "printed only"]
C = TypeVar("C")


class Row(RowFields, SlicePart, Generic[C]):
    """A system under a setting; its id is unique there. In the plan cells are requests, in the table they are made."""

    origin: Origin = Field(
        "run", description="How its numbers come about: run, run from released weights, run of others, or printed only."
    )
    cells: dict[str, C] = Field(description="By the column's id.")


class PlannedRow(Row[CellRequest]):
    """A row in the plan; where objectives are compared, with folders of models, by system and by kind of training."""

    models: dict[str, dict[str, list[str]]] = {}

    @property
    def folders(self) -> list[str]:
        """Those that its cells read."""
        return [read.folder for cell in self.cells.values() for read in cell.reads]


class Column(ColumnFields, SlicePart):
    """What the cells of a column have in common; a text that not all have alike, or that is not known yet, is empty."""

    source: str = Field("measure", description="Where the values come from: measure, efficiency, held_out, ...")
    unit: str = Field(
        "", description="share, percent (whose values are shares too), or a unit such as ms; empty for counts."
    )
    direction: Literal["highest", "lowest"] | None = Field(
        None, description="Which value is the best; null for neither."
    )
    measure: str = Field("", description="What its numbers are.")
    dataset: str = Field("", description="The dataset that they are about.")
    split: str = Field("", description="The split whose queries were answered.")


class PlannedColumn(Column):
    """A column in the plan."""

    reported_scale: int | float = 1  # the factor from a printed number to our unit
    partial: bool = False  # whether it is a mean, or of one, of fewer columns than the paper's


class Grid(Product):
    """The rows and columns of a planned table."""

    rows: list[PlannedRow]
    columns: list[PlannedColumn]

    def own(self, source: str) -> list[PlannedColumn]:
        """The columns whose values come from a source."""
        return [column for column in self.columns if column.source == source]

    def cells(self, columns: Sequence[Column]) -> list[CellRequest]:
        """All cells of some columns, columns before rows."""
        return [row.cells[column.id] for column in columns for row in self.rows]

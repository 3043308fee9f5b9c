"""A row, a column and a cell of a table as they are planned; sources of values are given these."""

from typing import Literal

from pydantic import BaseModel, Field, model_validator

from encore.config.strict import Strict
from encore.products.slices import Product, Read, SlicePart


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

    comparators: list[str] = Field(max_length=5)  # there are as many markers
    family: Literal["holm"] = "holm"
    printed: dict[str, str | list[str]] = Field(
        {},
        description="The paper's own significance markers, each with the comparator, or comparators, that it is about.",
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


class CellSlice(SlicePart):
    """A cell: what of its column's source it shows (a measure by its short name in the scores), and where it is.

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


class Row(RowFields, SlicePart):
    """A row with what each of its cells shows and reads."""

    cells: dict[str, CellSlice]  # by the column's id
    models: dict[str, list[str]] = {}  # behind what it reads, by kind of training; in a table with a control


class Column(ColumnFields, SlicePart):
    """What its cells have in common: the source of their values, and the columns that it is a mean of here."""

    source: str = "measure"
    reported_scale: float = 1.0  # the factor from a printed number to our unit


class Grid(Product):
    """The rows and columns of a table."""

    rows: list[Row]
    columns: list[Column]

    def own(self, source: str) -> list[Column]:
        """The columns whose values come from a source."""
        return [column for column in self.columns if column.source == source]

    def cells(self, columns: list[Column]) -> list[CellSlice]:
        """All cells of some columns, columns before rows."""
        return [row.cells[column.id] for column in columns for row in self.rows]

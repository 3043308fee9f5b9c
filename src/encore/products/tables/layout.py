"""A table's slice of the plan: its rows and columns, what each cell shows and what it is read from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from encore.products.slices import Product, Read, SlicePart, Unit
from encore.products.tables.entries import ColumnFields, RowFields

REPRODUCTION = "reproduction.csv"  # how close runs are to released ones: `<table>.reproduction.csv`

# What is read of a folder, by the source of values; all of it where nothing is named.
FILES: dict[str, tuple[str, ...]] = {
    "held_out": ("held_out.tsv",),
    "statistic": ("statistics.json",),
    "tokens": ("passages.offsets.npy", "queries.offsets.npy"),
}


class CellSlice(SlicePart):
    """A cell: what of its column's source it shows (a measure by its short name in the scores), and where it is.

    Without ``reads`` it only shows what the paper printed, if anything. ``reported`` are the columns and entries that
    identify its number in the file of reported ones. ``not_applicable`` and ``absent`` are reasons: why the row can
    have no such number, and why this run cannot.
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

    source: Literal[
        "measure",
        "efficiency",
        "held_out",
        "masked_loss",
        "pairs",
        "recorded",
        "statistic",
        "tokens",
        "vectors",
        "mean_of",
        "gain",
        "printed",
    ] = "measure"
    reported_scale: float = 1.0  # the factor from a printed number to our unit


def of_unseen(column: str, label: str) -> tuple[str, str]:
    """The id and the label of a column's second one, which is about those queries alone that training has not met."""
    return f"{column}-unseen", f"{label[:-1]}, unseen)" if label.endswith(")") else f"{label} (unseen)"


class Design(SlicePart):
    """Which rows of the same setting each row is compared with, and how a family of tests is corrected."""

    comparators: list[str] = Field(max_length=5)  # there are as many markers
    family: Literal["holm"] = "holm"
    printed: dict[str, str | list[str]] = {}  # the paper's markers, with the comparator each is about, or the best of

    def meant(self) -> dict[str, list[str]]:
        """The comparators that a row with each of the paper's markers is above, all of them."""
        return {symbol: [rows] if isinstance(rows, str) else rows for symbol, rows in self.printed.items()}


class RowAddress(SlicePart):
    """A row by its setting and id."""

    setting: str
    row: str

    @property
    def key(self) -> tuple[str, str]:
        """The setting and the id, which together identify a row in its table."""
        return self.setting, self.row


class Reference(RowAddress):
    """A released run, with the columns of the row that share it, our runs by seed, and the row it is a gain over."""

    columns: list[str]
    run: str
    ours: list[Read]
    collection: str  # its folder
    over: RowAddress | None = None


class Layout(Product):
    """A table: rows by columns."""

    paper: str
    title: str
    unit: Unit = "share"  # of measures, as the paper prints them and people are shown ours
    rows: list[Row]
    columns: list[Column]
    dataset_labels: dict[str, str] = {}
    significance: Design | None = None
    reported: str | None = None
    references: list[Reference] = []
    references_sha256: dict[str, str] = {}
    depth: int = 0  # ranks of our runs, where they are compared with released ones
    notes: list[str] = []

    def settings(self) -> list[str]:
        """Settings in the order of their first rows."""
        return list(dict.fromkeys(row.setting for row in self.rows))

    def comparators(self) -> list[str]:
        """Ids of the rows that the others are tested against; none in a table without tests."""
        return self.significance.comparators if self.significance else []

    def row(self, address: RowAddress) -> Row:
        """The row at an address; there must be one."""
        return next(row for row in self.rows if (row.setting, row.id) == address.key)

    def shown(self) -> list[Column]:
        """The columns that people are shown."""
        return [column for column in self.columns if not column.hidden]

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Folders that the cells are computed from.

        Returns:
            The files that are read, by folder; None for all of them.
        """
        cells = ((row.cells[column.id], column.source) for row in self.rows for column in self.columns)
        return {Path(read.folder): FILES.get(source) for cell, source in cells for read in cell.reads}

    def beside(self, folder: Path) -> list[Path]:
        """How close the table's runs are to released ones, if the run's file names some."""
        return [folder / f"{self.name}.{REPRODUCTION}"] if self.references else []

"""A table's slice of the plan: its rows and columns, what each cell shows and what it is read from."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from encore.products.slices import Read, SlicePart, Unit
from encore.products.tables.grid import Column, Grid, Row, Significance
from encore.products.tables.sources.kinds import SOURCES
from encore.products.tables.texts import SearchedTexts
from encore.storage import program_files

REPRODUCTION = "reproduction.csv"  # how close runs are to released ones: `<table>.reproduction.csv`


def of_unseen(column: str, label: str) -> tuple[str, str]:
    """The id and the label of the second column of a measure, on the queries that do not occur in training."""
    return f"{column}-unseen", f"{label[:-1]}, unseen)" if label.endswith(")") else f"{label} (unseen)"


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


class Layout(Grid):
    """A table: rows by columns."""

    paper: str
    title: str
    unit: Unit = "share"  # of measures, as the paper prints them and people are shown ours
    dataset_labels: dict[str, str] = {}
    significance: Significance | None = None
    reported: Annotated[Path, AfterValidator(program_files.found)] | None = None
    references: list[Reference] = []
    references_sha256: dict[str, str] = {}
    texts: list[SearchedTexts] = []
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
        """Folders that the cells are computed from."""
        cells = ((row.cells[column.id], SOURCES[column.source]) for row in self.rows for column in self.columns)
        texts = {folder: files for each in self.texts for folder, files in each.reads().items()}
        return texts | {Path(read.folder): source.files for cell, source in cells for read in cell.reads}

    def others(self, folder: Path) -> list[Path]:
        """How close the table's runs are to released ones, if the run's file names some."""
        return [folder / f"{self.name}.{REPRODUCTION}"] if self.references else []


def upstream_cells(content: Mapping[str, Any], setting: str, row: str, column: str) -> Iterator[dict[str, Any]]:
    """The cell, then those that its value is computed from, and so on."""
    rows = {(each["setting"], each["id"]): each["cells"] for each in content["rows"]}
    return (rows[setting, row][column] for row, column in upstream_places(content, setting, row, column))


def upstream_places(content: Mapping[str, Any], setting: str, row: str, column: str) -> Iterator[tuple[str, str]]:
    """The rows and columns of these cells."""
    columns = {each["id"]: each for each in content["columns"]}
    rows = {each["id"] for each in content["rows"] if each["setting"] == setting}
    waiting = [(row, column)]
    while waiting:
        row, column = waiting.pop(0)
        if row not in rows:  # a gain over a row that the run leaves out
            continue
        yield row, column
        waiting += [(row, part) for part in columns[column]["mean_of"]]
        gain = columns[column].get("gain")
        if gain and gain["over"] != row:
            waiting += [(each, gain["of"]) for each in (row, gain["over"])]

"""The tables of the page: those that were made, read as data, and the printed numbers of the others."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from encore.products.report.slice import RESULTS, ReportSlice, slug
from encore.products.slices import paper_of
from encore.products.tables.compute import compute_table
from encore.products.tables.grid import CellRequest, Column, Row
from encore.products.tables.sources.kinds import source_of
from encore.products.tables.table import Table, read_table


@dataclass(frozen=True)
class ShownTable:
    """A table of the page; ``reported`` is its file of printed numbers, if it has one."""

    name: str
    table: Table
    made: bool
    reported: str

    @property
    def place(self) -> str:
        """The name of the table's section on the page."""
        return f"t-{slug(self.name)}"

    @property
    def path(self) -> str:
        """Its CSV, which is what people ask for."""
        return f"{RESULTS}/tables/{self.name}.csv"

    @property
    def paper(self) -> str:
        """The folder of the paper that it is from."""
        return paper_of(self.name)

    @property
    def number(self) -> str:
        """What the paper calls it: ``Table 1``; our own by their names."""
        stem = self.name.rsplit("/", 1)[-1]
        return stem.replace("table", "Table ") if stem.removeprefix("table").isdigit() else stem

    @property
    def width(self) -> int:
        """How many columns people are shown, with that of the rows' names."""
        return 1 + len(self.table.shown()) + (2 if self.table.judged else 0)

    @property
    def reach(self) -> float:
        """The largest distance from 0 of a difference to the control with its interval; 0 where there is none."""
        judged = self.table.judged
        found = (self.table.to_control(row, judged) for row in self.table.rows if judged)
        return max((max(abs(each.low), abs(each.high)) for each in found if each), default=0.0)

    def key(self, row: Row, column: Column) -> str:
        """The end of the names of a cell and of its explanation."""
        return f"-{slug(self.name)}-{self.table.rows.index(row)}-{self.table.columns.index(column)}"

    def row(self, setting: str, name: str) -> Row | None:
        """A row; None where this table has no such."""
        return next((row for row in self.table.rows if (row.setting, row.id) == (setting, name)), None)

    def folders(self) -> list[str]:
        """Every folder that it reads, once."""
        cells = (cell.request for row in self.table.rows for cell in row.cells.values())
        return list(dict.fromkeys(read.folder for cell in cells for read in cell.reads))

    def reads(self, row: Row, column: Column) -> list[str]:
        """The folders that a cell was computed from; of a mean or a gain, those of its parts."""
        return list(dict.fromkeys(read.folder for cell in self._parts(row, column) for read in cell.reads))

    def files(self, row: Row, column: Column) -> list[str]:
        """The user's files that a cell was computed from, likewise."""
        return list(dict.fromkeys(cell.record for cell in self._parts(row, column) if cell.record))

    def question(self, row: Row, column: Column) -> list[str]:
        """The arguments of `encore explain` about a cell."""
        setting = ["--setting", row.setting] if row.setting else []
        return [self.path, "--row", row.id, *setting, "--column", column.id]

    def _parts(self, row: Row, column: Column) -> Iterator[CellRequest]:
        """The cell, and those that its value is computed from."""
        yield row.cells[column.id].request
        for name, part in source_of(column).parts(row, column).values():
            if other := self.row(row.setting, name):
                yield from self._parts(other, self.table.column(part))


@dataclass(frozen=True)
class PrintedCount:
    """How many cells the papers' tables have, and in how many of them a paper prints a number, a word, or nothing."""

    cells: int
    numbers: int
    words: int

    @property
    def empty(self) -> int:
        """The cells in which a paper prints nothing."""
        return self.cells - self.numbers - self.words


def read_tables(site: ReportSlice) -> list[ShownTable]:
    """Those that were made, in the configuration's order, then those of the catalogue that were not."""
    shown = []
    for name in site.tables:
        record = json.loads((RESULTS / f"tables/{name}.manifest.json").read_text())
        table = read_table(RESULTS / f"tables/{name}.json")
        shown.append(ShownTable(name, table, made=True, reported=record["spec"].get("reported") or ""))
    for name, layout in site.printed.items():
        shown.append(ShownTable(name, compute_table(layout), made=False, reported=layout.reported))
    return shown


def count_printed(tables: Iterable[ShownTable]) -> PrintedCount:
    """Count what the papers print in the shown cells of tables that have a file of printed numbers."""
    counted = [shown.table for shown in tables if shown.reported]
    cells = [row.cells[column.id] for table in counted for row in table.rows for column in table.shown()]
    printed = [cell.printed for cell in cells if cell.printed]
    numbers = sum(each.value is not None for each in printed)
    return PrintedCount(len(cells), numbers, len(printed) - numbers)

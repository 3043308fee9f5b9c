"""The tables that the report shows: those that were made, as their files say, and the printed numbers of the others."""

import csv
import json
from dataclasses import dataclass

from encore.plan.tables import printed as reported
from encore.plan.tables.layout import OURS, Column, Layout, Row
from encore.report import sheets
from encore.report.markup import slug
from encore.report.slice import RESULTS, ReportSlice
from encore.reporting.tables.compute import compute_table
from encore.reporting.tables.sheet import Sheet, SheetEntry, make_sheet

PAPERS = {
    OURS: "Encore",
    "bow": "BoW prediction",
    "costa": "COSTA",
    "cpdae": "CPDAE",
    "tct_colbert": "TCT-ColBERT",
    "two_tower": "Two-tower pre-training",
    "real": "Real data",
}


@dataclass(frozen=True)
class PublishedTable:
    """A table as the report shows it; ``lines`` are those of its CSV by setting, row and column, if it was made."""

    name: str
    layout: Layout
    sheet: Sheet
    lines: dict[tuple[str, str, str], dict[str, str]]
    made: bool
    words: dict[tuple[str, str, str], str]  # what the paper prints, likewise

    @property
    def place(self) -> str:
        """The id of the table's section in the page."""
        return f"t-{slug(self.name)}"

    @property
    def number(self) -> str:
        """What the paper calls it: ``Table 1``; our own by their names."""
        stem = self.name.rsplit("/", 1)[-1]
        return stem.replace("table", "Table ") if stem.removeprefix("table").isdigit() else stem

    def columns(self) -> dict[str, Column]:
        """The columns by id."""
        return {column.id: column for column in self.layout.columns}

    def entry(self, row: Row, column: Column) -> str:
        """What people are shown in a cell: ours, and what the paper prints."""
        rows = [each for each in self.layout.rows if each.setting == row.setting]
        line = self.sheet.blocks[self.layout.settings().index(row.setting)].lines[rows.index(row)]
        return line[1 + self.layout.shown().index(column)].text

    def folders(self) -> list[str]:
        """Every folder that it reads, once."""
        reads = (read.folder for row in self.layout.rows for cell in row.cells.values() for read in cell.reads)
        return list(dict.fromkeys(reads))


def all_tables(site: ReportSlice) -> list[PublishedTable]:
    """Those that were made, in the configuration's order, then those of the catalogue that were not."""
    return [*map(_made, site.tables), *(_printed(name, layout) for name, layout in site.printed.items())]


def paper_of(name: str) -> str:
    """The folder of a paper that a table is from."""
    return name.split("/")[0] if "/" in name else OURS


def _made(name: str) -> PublishedTable:
    record = json.loads((RESULTS / f"tables/{name}.manifest.json").read_text())
    layout = Layout.model_validate(record["spec"])
    with (RESULTS / f"tables/{name}.csv").open(newline="", encoding="utf-8") as file:
        lines = {(line["setting"], line["row"], line["column"]): line for line in csv.DictReader(file)}
    return PublishedTable(
        name, layout, sheets.read_sheet(RESULTS / f"tables/{name}.html"), lines, made=True, words=_words(layout)
    )


def _printed(name: str, layout: Layout) -> PublishedTable:
    """A table of which nothing was run: a sheet with the paper's numbers alone, without their parentheses."""
    plain = make_sheet(compute_table(layout))
    for block in plain.blocks:
        block.lines[:] = [[line[0], *map(_bare, line[1:])] for line in block.lines]
    only = Sheet(name, layout.title, plain.header, plain.blocks, layout.notes)
    return PublishedTable(name, layout, only, {}, made=False, words=_words(layout))


def _words(layout: Layout) -> dict[tuple[str, str, str], str]:
    """What the paper prints in each cell, as it prints it."""
    rows = reported.read(layout.reported)
    places = ((row, column) for row in layout.rows for column in layout.columns)
    found = {(row.setting, row.id, column.id): reported.find(rows, row, column) for row, column in places}
    return {place: printed.text for place, printed in found.items() if printed}


def _bare(entry: SheetEntry) -> SheetEntry:
    return SheetEntry(entry.text.removeprefix("(").removesuffix(")"))

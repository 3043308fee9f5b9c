"""A table's slice of the plan: its rows and columns, what each cell shows and what it is read from."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from encore.products.slices import SlicePart, Unit
from encore.products.tables.grid import CellRequest, Grid, PlannedColumn, Significance
from encore.products.tables.sources.kinds import SOURCES
from encore.products.tables.texts import SearchedTexts
from encore.storage import program_files


def of_unseen(column: str, label: str) -> tuple[str, str]:
    """The id and the label of the second column of a measure, on the queries that do not occur in training."""
    return f"{column}-unseen", f"{label[:-1]}, unseen)" if label.endswith(")") else f"{label} (unseen)"


class Validated(SlicePart):
    """A fine-tuning of a row that kept the weights of its best validation."""

    setting: str
    label: str  # the row's, with its column where each has another system
    seed: int
    folder: str


class Layout(Grid):
    """A table: rows by columns."""

    paper: str
    title: str
    unit: Unit = "share"  # of measures, as the paper prints them and people are shown ours
    dataset_labels: dict[str, str] = {}
    significance: Significance | None = None
    reported: str = ""  # the file of printed numbers
    reported_sha256: str = ""
    records_sha256: dict[str, str] = {}  # of the records that cells read
    validated: list[Validated] = []
    texts: list[SearchedTexts] = []
    notes: list[str] = []
    untrained: bool = False  # whether no model learned from the collection, whatever queries it has to train on

    def settings(self) -> list[str]:
        """Settings in the order of their first rows."""
        return list(dict.fromkeys(row.setting for row in self.rows))

    def comparators(self) -> list[str]:
        """Ids of the rows that the others are tested against; none in a table without tests."""
        return self.significance.comparators if self.significance else []

    @property
    def margin(self) -> float | None:
        """What rows are equivalent within, in the measure's unit; None in a table without such a verdict."""
        return self.significance.margin if self.significance else None

    @property
    def printed_file(self) -> Path | None:
        """The file of printed numbers, wherever the program is."""
        return program_files.found(self.reported) if self.reported else None

    def shown(self) -> list[PlannedColumn]:
        """The columns that people are shown."""
        return [column for column in self.columns if not column.hidden]

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Folders that the cells are computed from."""
        cells = ((row.cells[column.id], SOURCES[column.source]) for row in self.rows for column in self.columns)
        texts = {folder: files for each in self.texts for folder, files in each.reads().items()}
        return texts | {Path(read.folder): source.files for cell, source in cells for read in cell.reads}

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """Texts below the table, then rows."""
        for texts in self.texts:
            yield texts.dataset, [texts.collection, *(folder for folder, _ in texts.tokens)]
        for row in self.rows:
            yield row.label + (f" [{row.setting}]" if row.setting else ""), row.folders

    def upstream(self, setting: str, row: str, column: str) -> dict[tuple[str, str], CellRequest]:
        """A cell, then those that its value is computed from, and so on, by row and column."""
        columns = {each.id: each for each in self.columns}
        rows = {each.id: each for each in self.rows if each.setting == setting}
        found, waiting = dict[tuple[str, str], CellRequest](), [(row, column)]
        for name, at in waiting:
            if name not in rows:  # a gain over a row that the run leaves out
                continue
            found[name, at] = rows[name].cells[at]
            waiting += [(name, part) for part in columns[at].mean_of]
            gain = columns[at].gain
            if gain and gain.over != name:
                waiting += [(each, gain.of) for each in (name, gain.over)]
        return found

"""The table as people see it, before it becomes Markdown, LaTeX or HTML: texts, bold, markers and footnotes."""

from dataclasses import dataclass

from encore.reporting.tables.table import Row, Table


@dataclass(frozen=True)
class SheetEntry:
    """One shown cell; ``marker`` is set above the line where the format can."""

    text: str
    bold: bool = False
    marker: str = ""


@dataclass(frozen=True)
class SheetBlock:
    """The rows of one setting."""

    title: str
    lines: list[list[SheetEntry]]


@dataclass(frozen=True)
class Sheet:
    """A caption, a header, blocks of lines as long as the header, and footnotes."""

    name: str
    title: str
    header: list[str]
    blocks: list[SheetBlock]
    notes: list[str]


def make_sheet(table: Table) -> Sheet:
    """The papers' layout, then the difference to the control and the verdict where there are any."""
    shown = [column.label for column in table.shown()]
    extra = [f"{table.column(table.judged).label} − control [95 %]", "Verdict"] if table.judged else []
    blocks = [SheetBlock(setting, [_line(table, row) for row in rows]) for setting, rows in table.groups()]
    return Sheet(table.label, table.title, ["", *shown, *extra], blocks, [*table.footnotes, *table.notes])


def _line(table: Table, row: Row) -> list[SheetEntry]:
    cells = [row.cells[column.id] for column in table.shown()]
    entries = [
        SheetEntry(cell.text, cell.ours.best, cell.ours.markers) if cell.ours else SheetEntry(cell.text)
        for cell in cells
    ]
    if table.judged:
        compared = table.to_control(row, table.judged)
        entries += [SheetEntry(compared.text if compared else ""), SheetEntry(row.cells[table.judged].verdict_text)]
    return [SheetEntry(row.label), *entries]

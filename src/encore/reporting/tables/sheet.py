"""The table as people see it, before it becomes Markdown, LaTeX or HTML: texts, bold, markers and footnotes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from encore.plan.tables.layout import OURS, Column, Row, Unit
from encore.reporting.sources import SOURCES, source_of
from encore.reporting.tables import footnotes
from encore.reporting.tables.cells import TableCell, TableGrid
from encore.reporting.tables.footnotes import DISAGREES, RAISED
from encore.reporting.tables.verdicts import OPEN


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


def make_sheet(grid: TableGrid, further: Sequence[str] = ()) -> Sheet:
    """What a grid shows: the papers' layout, then the difference to the control and the verdict where there are any.

    Args:
        further: notes below the grid's own.
    """
    layout = grid.layout
    shown = [column.label for column in layout.shown()]
    primary = _judged_column(grid) if any(row.role == "control" for row in layout.rows) else None
    extra = [f"{primary.label} − control [95 %]", "Verdict"] if primary else []
    blocks = [
        SheetBlock(setting, [_line(grid, row, primary) for row in grid.rows(setting)]) for setting in layout.settings()
    ]
    name = layout.name if layout.paper == OURS else f"{layout.paper}:{layout.name}"  # papers number alike
    return Sheet(name, layout.title, ["", *shown, *extra], blocks, [*footnotes.footnotes(grid), *further])


def signed(value: float, unit: Unit = "share") -> str:
    """A difference of measures."""
    return ("+" if value >= 0 else "−") + SOURCES["measure"].shown(abs(value), unit)


def _judged_column(grid: TableGrid) -> Column | None:
    """The primary column, if any row of it was compared with anything."""
    primary = [column for column in grid.layout.columns if column.primary]
    compared = [column for column in primary if any(grid.cell(row, column).comparisons for row in grid.layout.rows)]
    return compared[0] if compared else None


def _line(grid: TableGrid, row: Row, primary: Column | None) -> list[SheetEntry]:
    unit = grid.layout.unit
    cells = [grid.cell(row, column) for column in grid.layout.shown()]
    entries = [SheetEntry(_number(cell, unit), grid.is_best(cell), cell.markers) for cell in cells]
    if primary:
        cell = grid.cell(row, primary)
        entries += [SheetEntry(_to_control(cell, unit)), SheetEntry(_verdict(cell, unit))]
    return [SheetEntry(row.label), *entries]


def _number(cell: TableCell, unit: Unit) -> str:
    """The mean, its deviation over seeds, and in parentheses the paper's number and how far ours is from it."""
    shown = partial(source_of(cell.column).shown, unit=unit)
    parts = [shown(cell.reproduced)] if cell.reproduced is not None else []
    if cell.sd is not None:
        parts.append(f"±{shown(cell.sd)}")
    if cell.printed:
        scaled = cell.column.reported_scale != 1 and cell.reported is not None
        text = shown(cell.reported) if scaled and cell.reported is not None else cell.printed
        theirs = [text + cell.printed_markers.translate(RAISED) + (DISAGREES if _disagrees(cell) else "")]
        if cell.difference is not None:
            theirs.append(("+" if cell.difference >= 0 else "−") + shown(abs(cell.difference)))
        parts.append(f"({'; '.join(theirs)})")
    return " ".join(parts)


def _disagrees(cell: TableCell) -> bool:
    """Whether our test says otherwise than a marker of the paper's, or than its lack."""
    return bool(cell.unconfirmed or cell.unprinted)


def _to_control(cell: TableCell, unit: Unit) -> str:
    comparison = cell.comparisons.get(cell.control or "")
    if comparison is None:
        return ""
    low, high = comparison.difference.interval()
    return f"{signed(comparison.difference.mean, unit)} [{signed(low, unit)}, {signed(high, unit)}]"


def _verdict(cell: TableCell, unit: Unit) -> str:
    if cell.verdict != OPEN or not cell.detectable:
        return cell.verdict
    return f"{cell.verdict} (needs {source_of(cell.column).shown(cell.detectable, unit)})"

"""The table as people see it, before it becomes Markdown, LaTeX or HTML: texts, bold, markers and footnotes."""

from dataclasses import dataclass

from encore.reporting import efficiency, footnotes
from encore.reporting.cells import Cell, Grid
from encore.reporting.layout import Column, Row
from encore.reporting.verdicts import OPEN


@dataclass(frozen=True)
class Entry:
    """One shown cell; ``marker`` is set above the line where the format can."""

    text: str
    bold: bool = False
    marker: str = ""


@dataclass(frozen=True)
class Block:
    """The rows of one setting."""

    title: str
    lines: list[list[Entry]]


@dataclass(frozen=True)
class Sheet:
    """A caption, a header, blocks of lines as long as the header, and footnotes."""

    name: str
    title: str
    header: list[str]
    blocks: list[Block]
    notes: list[str]


def sheet(grid: Grid) -> Sheet:
    """What a grid shows: the papers' layout, then the difference to the control and the verdict where there are any."""
    layout = grid.layout
    shown = [column.label for column in layout.columns]
    primary = _judged_column(grid) if any(row.role == "control" for row in layout.rows) else None
    extra = [f"{primary.label} − control [95 %]", "Verdict"] if primary else []
    blocks = [
        Block(setting, [_line(grid, row, primary) for row in grid.rows(setting)]) for setting in layout.settings()
    ]
    return Sheet(layout.name, layout.title, ["", *shown, *extra], blocks, footnotes.footnotes(grid))


def signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _judged_column(grid: Grid) -> Column | None:
    """The primary column, if any row of it was compared with anything."""
    primary = [column for column in grid.layout.columns if column.primary]
    compared = [column for column in primary if any(grid.cell(row, column).comparisons for row in grid.layout.rows)]
    return compared[0] if compared else None


def _line(grid: Grid, row: Row, primary: Column | None) -> list[Entry]:
    cells = [grid.cell(row, column) for column in grid.layout.columns]
    entries = [Entry(_number(cell), _best(grid, cell), cell.markers) for cell in cells]
    if primary:
        cell = grid.cell(row, primary)
        entries += [Entry(_to_control(cell)), Entry(_verdict(cell))]
    return [Entry(row.label), *entries]


def _number(cell: Cell) -> str:
    """The mean, its deviation over seeds, and the paper's number in parentheses."""
    parts = [_digits(cell)] if cell.reproduced is not None else []
    if cell.sd is not None:
        parts.append(f"±{cell.sd:.3f}")
    if cell.reported is not None:
        parts.append(f"({cell.reported:g})")
    return " ".join(parts)


def _digits(cell: Cell) -> str:
    return efficiency.shown(cell.reproduced or 0) if cell.column.efficiency else f"{cell.reproduced:.3f}"


def _best(grid: Grid, cell: Cell) -> bool:
    """Whether the cell is the highest of its column within its setting; nothing is best alone, and no cost is."""
    if cell.column.efficiency:
        return False
    rivals = [grid.cell(row, cell.column).reproduced for row in grid.rows(cell.row.setting)]
    values = [value for value in rivals if value is not None]
    return len(values) > 1 and cell.reproduced == max(values)


def _to_control(cell: Cell) -> str:
    comparison = cell.comparisons.get(cell.control or "")
    if comparison is None:
        return ""
    low, high = comparison.difference.interval()
    return f"{signed(comparison.difference.mean)} [{signed(low)}, {signed(high)}]"


def _verdict(cell: Cell) -> str:
    shown = f" (needs {cell.detectable:.3f})" if cell.verdict == OPEN and cell.detectable else ""
    return cell.verdict + shown

"""The table as data: one line a cell, every number with the digits that read back equal."""

from collections.abc import Callable
from pathlib import Path

from encore.reporting.sources import source_of
from encore.reporting.tables.cells import TableCell, TableGrid
from encore.reporting.tables.comparisons import RowComparison
from encore.storage.csv_rows import number, write_rows


def write_tidy(path: Path, grid: TableGrid) -> None:
    """Write a table's cells, rows before columns in the table's order."""
    lines = [_line(grid, grid.cell(row, column)) for row in grid.layout.rows for column in grid.layout.columns]
    write_rows(path, list(lines[0]) if lines else [], [list(line.values()) for line in lines])


def _line(grid: TableGrid, cell: TableCell) -> dict[str, str]:
    layout, row, column, request = grid.layout, cell.row, cell.column, cell.request
    mean_low, mean_high = cell.interval or (None, None)
    low, high = cell.ties or (None, None)
    to_control = cell.comparisons.get(cell.control or "")
    interval = to_control.difference.interval() if to_control else (None, None)
    return {
        "paper": layout.paper,
        "table": layout.name,
        "row": row.id,
        "label": row.label,
        "setting": row.setting,
        "system": request.system or row.system,
        "dataset": request.dataset,
        "split": request.split,
        "measure": source_of(column).named(request, column),
        "reported": number(cell.reported),
        "reproduced": number(cell.reproduced),
        "sd": number(cell.sd),
        "seeds": _count(cell.seeds),
        "tie_low": number(low),
        "tie_high": number(high),
        **_each(layout.comparators(), cell, "delta", lambda one: one.difference.mean),
        "interval_low": number(interval[0]),
        "interval_high": number(interval[1]),
        **_each(layout.comparators(), cell, "p", lambda one: one.difference.p),
        **_each(layout.comparators(), cell, "p_holm", lambda one: one.p_holm),
        **_each(layout.comparators(), cell, "p_ttest_one_seed", lambda one: one.p_one_seed),
        **_each(layout.comparators(), cell, "p_randomisation", lambda one: one.p_randomised),
        "markers": cell.markers,
        "detectable": number(cell.detectable),
        "queries_judged": _count(cell.judged),
        "queries_answered": _count(cell.answered),
        "verdict": cell.verdict,
        "collection": request.collection,
        "difference": number(cell.difference),
        "source": row.reported_only,
        "column": column.id,
        "mean_low": number(mean_low),
        "mean_high": number(mean_high),
        "markers_printed": cell.printed_markers,
        "markers_unconfirmed": cell.unconfirmed,
        "markers_unprinted": cell.unprinted,
    }


def _each(
    others: list[str], cell: TableCell, prefix: str, value: Callable[[RowComparison], float | None]
) -> dict[str, str]:
    """A column for each comparator; empty where the row was not compared with it."""
    against = {name: cell.comparisons.get(name) for name in others}
    return {f"{prefix}_{name}": number(value(one) if one else None) for name, one in against.items()}


def _count(value: int | None) -> str:
    return "" if value is None else str(value)

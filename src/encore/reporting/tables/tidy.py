"""The table as one line a cell, for statistics: every number with the digits that read back equal."""

from collections.abc import Callable
from pathlib import Path

from encore.reporting.tables.table import Column, Comparison, Row, Table
from encore.storage.csv_rows import number, write_rows


def write_tidy(path: Path, table: Table) -> None:
    """Write a table's cells, rows before columns in the table's order."""
    lines = [_line(table, row, column) for row in table.rows for column in table.columns]
    write_rows(path, list(lines[0]) if lines else [], [list(line.values()) for line in lines])


def _line(table: Table, row: Row, column: Column) -> dict[str, str]:
    cell = row.cells[column.id]
    ours, printed, request = cell.ours, cell.printed, cell.request
    to_control = table.to_control(row, column.id)

    def each(prefix: str, value: Callable[[Comparison], float | None]) -> dict[str, str]:
        """A column for each comparator; empty where the row was not compared with it."""
        found = {name: cell.comparisons.get(name) for name in table.comparators}
        return {f"{prefix}_{name}": number(value(one) if one else None) for name, one in found.items()}

    return {
        "paper": table.paper,
        "table": table.name,
        "row": row.id,
        "label": row.label,
        "setting": row.setting,
        "system": request.system or row.system,
        "dataset": request.dataset,
        "split": request.split,
        "measure": cell.measure,
        "reported": number(printed.value if printed else None),
        "reproduced": number(ours.value if ours else None),
        "sd": number(ours.sd if ours else None),
        "seeds": _count(ours.seeds if ours else None),
        "tie_low": number(ours.ties[0] if ours and ours.ties else None),
        "tie_high": number(ours.ties[1] if ours and ours.ties else None),
        **each("delta", lambda one: one.difference),
        "interval_low": number(to_control.low if to_control else None),
        "interval_high": number(to_control.high if to_control else None),
        **each("p", lambda one: one.p),
        **each("p_holm", lambda one: one.p_holm),
        **each("p_ttest_one_seed", lambda one: one.p_ttest_one_seed),
        **each("p_randomisation", lambda one: one.p_randomisation),
        "markers": ours.markers if ours else "",
        "detectable": number(cell.detectable),
        "queries_judged": _count(ours.judged if ours else None),
        "queries_answered": _count(ours.answered if ours else None),
        "verdict": cell.verdict,
        "collection": request.collection,
        "difference": number(printed.difference if printed else None),
        "source": row.reported_only,
        "column": column.id,
        "mean_low": number(ours.interval[0] if ours and ours.interval else None),
        "mean_high": number(ours.interval[1] if ours and ours.interval else None),
        "markers_printed": printed.markers if printed else "",
        "markers_unconfirmed": printed.unconfirmed if printed else "",
        "markers_unprinted": printed.unprinted if printed else "",
    }


def _count(value: int | None) -> str:
    return "" if value is None else str(value)

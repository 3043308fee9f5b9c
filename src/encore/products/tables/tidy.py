"""The table as one line a cell, for statistics: a data frame, and its CSV, whose numbers read back equal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from encore.products.tables.grid import Column, Row
from encore.products.tables.table import Comparison, Table
from encore.storage.csv_rows import neutral, number
from encore.storage.files import replacing

COUNTS = ("seeds", "queries_judged", "queries_answered")


def tidy_frame(table: Table) -> pd.DataFrame:
    """A table's cells, rows before columns in the table's order; a number that is not there is missing."""
    lines = [_line(table, row, column) for row in table.rows for column in table.columns]
    return pd.DataFrame(lines).astype(dict.fromkeys(COUNTS, "Int64"))


def write_tidy(path: Path, table: Table) -> None:
    """Write the frame as CSV, without formulas; equal tables give equal bytes."""
    frame = tidy_frame(table)
    for name in frame.select_dtypes(object):
        frame[name] = frame[name].map(neutral, na_action="ignore")
    with replacing(path) as temporary:
        frame.to_csv(temporary, index=False, lineterminator="\n", float_format=number)


def _line(table: Table, row: Row, column: Column) -> dict[str, Any]:
    cell = row.cells[column.id]
    ours, printed, request = cell.ours, cell.printed, cell.request
    to_control = table.to_control(row, column.id)

    def each(prefix: str, value: Callable[[Comparison], float | None]) -> dict[str, float | None]:
        """A column for each comparator; missing where the row was not compared with it."""
        found = {name: cell.comparisons.get(name) for name in table.comparators}
        return {f"{prefix}_{name}": value(one) if one else None for name, one in found.items()}

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
        "reported": printed.value if printed else None,
        "reproduced": ours.value if ours else None,
        "sd": ours.sd if ours else None,
        "seeds": ours.seeds if ours else None,
        "tie_low": ours.ties[0] if ours and ours.ties else None,
        "tie_high": ours.ties[1] if ours and ours.ties else None,
        **each("delta", lambda one: one.difference),
        "interval_low": to_control.low if to_control else None,
        "interval_high": to_control.high if to_control else None,
        **each("p", lambda one: one.p),
        **each("p_holm", lambda one: one.p_holm),
        **each("p_ttest_one_seed", lambda one: one.p_ttest_one_seed),
        **each("p_randomisation", lambda one: one.p_randomisation),
        "markers": ours.markers if ours else "",
        "detectable": cell.detectable,
        "queries_judged": ours.judged if ours else None,
        "queries_answered": ours.answered if ours else None,
        "verdict": cell.verdict,
        "collection": request.collection,
        "difference": printed.difference if printed else None,
        "source": row.reported_only,
        "column": column.id,
        "mean_low": ours.interval[0] if ours and ours.interval else None,
        "mean_high": ours.interval[1] if ours and ours.interval else None,
        "markers_printed": printed.markers if printed else "",
        "markers_unconfirmed": printed.unconfirmed if printed else "",
        "markers_unprinted": printed.unprinted if printed else "",
        "expression": request.expression,
        "real_dataset": table.datasets.get(request.dataset, request.dataset),
        "stand_in": "yes" if table.proxy_data else "no",
    }

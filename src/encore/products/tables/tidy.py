"""The table as one line a cell, for statistics: a data frame, and its CSV, whose numbers read back equal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from encore.products.tables.grid import Column, Row
from encore.products.tables.table import Comparison, Table
from encore.storage.csv_rows import neutral, number
from encore.storage.files import replacing

COLUMNS = {
    "paper": "The paper's folder in config/papers; encore for our own.",
    "table": "The table's name in its paper.",
    "row": "The row's id, unique in its setting.",
    "label": "What the row is called.",
    "setting": "The group of rows that it is compared within.",
    "system": "What was run: an entry of systems.yaml, or a lineage.",
    "dataset": "The paper's dataset that the column asks for; `real_dataset` is the one that was run.",
    "split": "The split whose queries were answered.",
    "measure": "The measure's short name, or another quantity with its unit; `expression` has all of it.",
    "reported": "The paper's number, in the column's unit.",
    "reproduced": "Ours: the mean over queries and seeds.",
    "sd": "The standard deviation of `reproduced` over seeds.",
    "seeds": "How many seeds `reproduced` is the mean of.",
    "tie_low": "The lowest value of `reproduced` over all orders of tied scores that the run's depth did not cut off.",
    "tie_high": "The highest value, likewise.",
    "delta_<row>": "The mean difference to that row, over queries and paired seeds.",
    "interval_low": "Lower end of the interval of the difference to the control, `delta_control`.",
    "interval_high": "Upper end of the interval of the difference to the control, `delta_control`.",
    "p_<row>": "p of the two-sided cluster-robust test of `delta_<row>`.",
    "p_holm_<row>": "The same, corrected by Holm over the objectives of the setting under all primary columns.",
    "p_equivalent_<row>": "p of two one-sided tests that it is within the table's margin, corrected likewise; only in "
    "a table with one.",
    "p_ttest_one_seed_<row>": "p of the papers' paired t-test, on the first seed.",
    "p_randomisation_<row>": "p of the randomisation test.",
    "markers": "Symbols of the rows that it is significantly above; those after − it is significantly below.",
    "detectable": "The smallest gain that the verdict finds in 80 % ([protocol.md](protocol.md#4-significance)).",
    "queries_judged": "Queries with judgments.",
    "queries_answered": "Queries that the run of every seed answers.",
    "verdict": "Of objectives and missing cells ([protocol.md](protocol.md#5-verdicts)).",
    "collection": "The folder of the collection, with its digest.",
    "difference": "`reproduced` less `reported`.",
    "source": "Whose printed numbers the row shows, where nothing is run.",
    "origin": "How the row was obtained: run, run from released weights (of a backbone `…-released`), run of others, "
    "or printed only.",
    "column": "The column's id.",
    "mean_low": "Lower end of the interval of `reproduced`, over queries and seeds.",
    "mean_high": "Upper end of the interval of `reproduced`, over queries and seeds.",
    "markers_printed": "The paper's own markers.",
    "markers_unconfirmed": "Those of them that our test does not find.",
    "markers_unprinted": "Markers that our test finds and the paper does not print.",
    "expression": "The measure as ir-measures writes it; `RR(rel=3)@10` counts grades of 3 and more.",
    "real_dataset": "The dataset that was run.",
    "stand_in": "`yes` on proxy data ([protocol.md](protocol.md#2-proxy-data)); `proxy_data` in `claims.csv`.",
}
COUNTS = ("seeds", "queries_judged", "queries_answered")


def tidy_frame(table: Table) -> pd.DataFrame:
    """A table's cells, rows before columns in the table's order; a number that is not there is missing."""
    lines = [_line(table, row, column) for row in table.rows for column in table.columns]
    return pd.DataFrame(lines).astype(dict.fromkeys(COUNTS, "Int64"))


def write_tidy(path: Path, table: Table) -> None:
    """Write the frame as CSV, without formulas; equal tables give equal bytes."""
    frame = tidy_frame(table)
    for name in frame.select_dtypes(exclude="number"):
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
        **(each("p_equivalent", lambda one: one.p_equivalent) if table.has_margin else {}),
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
        "origin": row.origin,
        "column": column.id,
        "mean_low": ours.interval[0] if ours and ours.interval else None,
        "mean_high": ours.interval[1] if ours and ours.interval else None,
        "markers_printed": printed.markers if printed else "",
        "markers_unconfirmed": printed.unconfirmed if printed else "",
        "markers_unprinted": printed.unprinted if printed else "",
        "expression": request.expression,
        "real_dataset": table.datasets.get(request.dataset, request.dataset),
        "stand_in": "yes" if table.proxy_data is True else "no",
    }

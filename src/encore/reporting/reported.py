"""The papers' own numbers, from ``reported/`` files; never from code."""

import csv
from pathlib import Path

from encore.errors import EncoreError
from encore.reporting.layout import Column, Row

Reported = list[dict[str, str]]


def read(path: str | None) -> Reported:
    """Rows of a file with ``row_label``, ``setting``, ``dataset``, ``metric`` and ``value``; none without a file."""
    if path is None:
        return []
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise EncoreError(f"cannot read the reported numbers {path}: {error.strerror}; correct `reported:`") from error


def find(rows: Reported, row: Row, column: Column) -> float | None:
    """The number that the paper prints for a cell; None where it prints none.

    Raises:
        EncoreError: two numbers fit, so that the row needs ``reported_setting``.
    """
    wanted = {
        "row_label": row.reported_label or row.label,
        "dataset": column.reported_dataset or column.dataset,
        "metric": column.reported_metric or column.label,
    }
    if row.reported_setting is not None:
        wanted["setting"] = row.reported_setting
    values = [found["value"] for found in rows if all(found[key] == value for key, value in wanted.items())]
    if len(values) > 1:
        raise EncoreError(f"{len(values)} reported numbers fit {wanted}; set `reported_setting` of row {row.id!r}")
    return float(values[0]) if values and values[0] else None

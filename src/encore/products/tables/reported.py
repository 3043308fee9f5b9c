"""The papers' own numbers, from ``reported/`` files, which are checked before any job starts; never from code."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from encore.errors import EncoreError
from encore.products.slices import paper_of
from encore.products.tables.entries import Table, printed_as
from encore.storage import program_files
from encore.storage.files import sha256
from encore.storage.program_files import PAPERS, named

Reported = list[dict[str, str]]
COLUMNS = ("row_label", "dataset", "metric", "value")  # that every file has; `setting`, `significance_markers` may be
MANY = {"K": 1e3, "M": 1e6, "B": 1e9}  # as papers print large counts


@dataclass(frozen=True)
class Printed:
    """What a paper prints in a cell: its text, its number (None for a word such as OOM), and its markers."""

    text: str
    number: float | None
    markers: str = ""


def read(path: Path | None) -> Reported:
    """Rows of a file with ``row_label``, ``setting``, ``dataset``, ``metric`` and ``value``; none without a file."""
    if path is None:
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file)
            rows = list(table)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise EncoreError(f"cannot read the reported numbers {path}: {why}; correct `reported:`") from error
    if missing := [name for name in COLUMNS if name not in (table.fieldnames or [])]:
        raise EncoreError(f"{path} has no column {missing[0]!r}; name it in its first line, with commas between names")
    return rows


def found(rows: Reported, wanted: Mapping[str, str], row: str) -> Printed | None:
    """What the paper prints at the place that ``wanted`` gives by column of the file; None where it prints nothing."""
    if not wanted:
        return None
    fitting = [each for each in rows if wanted.items() <= each.items()]
    if len(fitting) > 1:
        raise EncoreError(f"{len(fitting)} reported numbers fit {wanted}; set `reported_setting` of row {row!r}")
    if not fitting or not fitting[0]["value"]:
        return None
    return _printed(fitting[0]["value"], (fitting[0].get("significance_markers") or "").replace(",", ""))


def _printed(text: str, markers: str) -> Printed:
    """``.310`` -> 0.31, ``11.2B`` -> 11.2e9, ``OOM`` -> no number."""
    text = f"0{text}" if text.startswith(".") else text
    try:
        return Printed(text, float(text.rstrip("KMB")) * MANY.get(text[-1:], 1), markers)
    except ValueError:
        return Printed(text, None, markers)


def reported_file(name: str, table: Table) -> dict[str, str]:
    """The file and its digest, so that a corrected number makes the table again; nothing for a table without one."""
    if table.reported is None:
        return {}
    file = named(PAPERS / paper_of(name) / table.reported)
    path = program_files.found(file)
    if not path.is_file():
        raise EncoreError(f"table {name!r}: the reported numbers {file} are missing; correct `reported:`")
    digest = sha256(path)
    rows = _rows(path, digest)
    for row in table.rows:
        if row.reported_only and not any(found(rows, printed_as(row, column), row.id) for column in table.columns):
            label = row.reported_label or row.label
            raise EncoreError(
                f"table {name!r}, row {row.id!r} is copied, and {path} has no number for it under {label!r}; correct "
                "its `reported_label` or `reported_setting`, or the `reported_dataset` or `reported_metric` of a column"
            )
    return {"reported": file, "reported_sha256": digest}


@cache
def _rows(path: Path, digest: str) -> Reported:
    """A file's rows, read once as long as it stays the same."""
    return read(path)

"""A table's file of printed numbers, looked at before any job starts."""

from functools import cache
from pathlib import Path

from encore.errors import EncoreError
from encore.products.tables.entries import Table, printed_as
from encore.products.tables.reported import Reported, found, read
from encore.storage.files import sha256

PAPERS = Path("config/papers")
OWN = "encore"  # the folder of our own tables, whose targets drop it


def reported_path(papers: Path, name: str, reported: str) -> Path:
    """The file of printed numbers that a table names.

    Raises:
        EncoreError: it is missing.
    """
    path = papers / (name.split("/")[0] if "/" in name else OWN) / reported
    if not path.is_file():
        raise EncoreError(f"table {name!r}: the reported numbers {path} are missing; correct `reported:`")
    return path


def reported_file(name: str, table: Table) -> dict[str, str]:
    """The file and its digest, so that a corrected number makes the table again; nothing for a table without one.

    Raises:
        EncoreError: it is missing or is no such file, or has nothing for a row that only shows what it has.
    """
    if table.reported is None:
        return {}
    path = reported_path(PAPERS, name, table.reported)
    digest = sha256(path)
    rows = _rows(str(path), digest)
    for row in table.rows:
        if row.reported_only and not any(found(rows, printed_as(row, column), row.id) for column in table.columns):
            label = row.reported_label or row.label
            raise EncoreError(
                f"table {name!r}, row {row.id!r} is copied, and {path} has no number for it under {label!r}; correct "
                "its `reported_label` or `reported_setting`, or the `reported_dataset` or `reported_metric` of a column"
            )
    return {"reported": str(path), "reported_sha256": digest}


@cache
def _rows(path: str, digest: str) -> Reported:
    """A file's rows, read once as long as it stays the same."""
    return read(path)

"""Numbers and rows as text that reads back equal on every machine."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.storage.files import write_text

FORMULA = ("=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠")  # how one begins
DIGITS = 12  # beyond them, processors disagree about the last bits of logarithms and sums


def rounded(value: float) -> float:
    """A number at 12 significant digits."""
    return float(f"{value:.{DIGITS}g}")


def number(value: float | None) -> str:
    """The shortest text of a number at 12 significant digits; nothing for a missing one."""
    return "" if value is None else repr(rounded(value))


def neutral(text: str) -> str:
    """A text as a spreadsheet shows it: one that would be calculated there begins with an apostrophe.

    Numbers stay as they are; a carriage return, which would end a line, is a blank. See OWASP, "CSV Injection".
    """
    text = text.replace("\r", " ")
    if not text.startswith(FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def read_rows(path: Path, *needed: str) -> list[dict[str, str]]:
    """The rows of a CSV file, each by the names of its header, with texts as they were before ``neutral``."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.DictReader(file)
        if missing := [name for name in needed if name not in (lines.fieldnames or ())]:
            raise EncoreError(f"{path} has no column {', '.join(missing)}; make the file again")
        return [{name: _as_it_was(cell) for name, cell in line.items()} for line in lines]


def _as_it_was(cell: Any) -> Any:
    """A cell without the apostrophe of ``neutral``; missing and surplus cells of a line are returned as they are."""
    return cell[1:] if isinstance(cell, str) and cell[:1] == "'" and neutral(cell[1:]) == cell else cell


def write_rows(path: Path, header: Iterable[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a CSV file, atomically: the header, then the rows, none a formula, lines ended by LF."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([neutral(cell) for cell in row] for row in (header, *rows))
    write_text(path, text.getvalue())

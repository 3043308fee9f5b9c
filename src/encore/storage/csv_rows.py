"""Numbers and rows as text that reads back equal on every machine."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from encore.storage.files import write_text

DIGITS = 12  # beyond them, processors disagree about the last bits of logarithms and sums


def rounded(value: float) -> float:
    """A number at 12 significant digits."""
    return float(f"{value:.{DIGITS}g}")


def number(value: float | None) -> str:
    """The shortest text of a number at 12 significant digits; nothing for a missing one."""
    return "" if value is None else repr(rounded(value))


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write a CSV file, atomically: the header, then the rows, lines ended by LF."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_text(path, text.getvalue())

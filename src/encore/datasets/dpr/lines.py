"""Columns parted by tabs, with the quoting of CSV, one row a line, as DPR writes its passages and questions."""

import csv
from collections.abc import Iterator
from pathlib import Path

from encore.errors import EncoreError
from encore.storage.text_files import numbered_lines


def columns(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows with their lines. Every line is read for itself, so that one with a quote too many cannot swallow others.

    Raises:
        EncoreError: with its line, a quote is not closed or is followed by something, or a column is absurdly long.
    """
    for number, line in numbered_lines(path):
        try:
            yield number, next(csv.reader([line], delimiter="\t", strict=True), [])
        except csv.Error as error:
            raise EncoreError(
                f"{path}, line {number}: cannot be parted ({error}); fix its quotes, or remove the line"
            ) from error

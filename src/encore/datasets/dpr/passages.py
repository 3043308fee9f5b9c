"""DPR's passages: ``id<TAB>text<TAB>title`` with a header, texts in quotes where they hold some, a passage a line."""

from collections.abc import Iterator
from pathlib import Path

from encore.data.collection import Row
from encore.datasets.dpr.lines import columns
from encore.errors import EncoreError

HEADER = ["id", "text", "title"]


def passages(path: Path) -> Iterator[tuple[int, Row]]:
    """Rows of a corpus, with their lines; those without text or title too.

    Raises:
        EncoreError: with its line, a row has not three columns, or the header is another.
    """
    for number, row in columns(path):
        if number == 1:
            if row != HEADER:
                raise EncoreError(f"{path}, line 1: the header must be id, text and title, parted by tabs; add it")
        elif len(row) != len(HEADER):
            raise EncoreError(
                f"{path}, line {number}: {len(row)} columns, 3 parted by tabs are expected; fix or remove the line"
            )
        else:
            yield number, {"_id": row[0], "title": row[2], "text": row[1]}

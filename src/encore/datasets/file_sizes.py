"""How many texts and queries files hold: counted, or estimated from the first part of large ones."""

import gzip
import json
from pathlib import Path
from typing import IO, cast

READ = 16 * 2**20  # bytes of a file that are read, packed or not; what follows in a larger one is taken to be alike


def count_texts(path: Path) -> tuple[int, int]:
    """Rows of a file of JSON lines, and mean words of their titles and texts; 1 at least of both."""
    rows, words, size = 0, 0, path.stat().st_size
    with path.open("rb") as packed:
        for line in _opened(path, packed):
            row = json.loads(line)
            words += len(f"{row.get('title') or ''} {row.get('text') or ''}".split())
            rows += 1
            if READ < packed.tell() < size:
                break
        share = packed.tell() / size
    return max(1, round(rows / share)), max(1, round(words / max(rows, 1)))


def count_queries(path: Path) -> int:
    """Queries of a file of judgments, in which the lines of a query follow each other."""
    queries, last = 0, b""
    with path.open("rb") as file:
        for line in file:
            name = line.split(None, 1)[0] if line.strip() else last
            queries, last = queries + (name != last), name
    return max(1, queries - 1)  # the header counts as one


def _opened(path: Path, file: IO[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if path.suffix == ".gz" else file

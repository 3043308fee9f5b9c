"""How large a folder in BEIR's layout is, by its files: counted, or estimated from the first part of large ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import IO, Any, cast

from encore.datasets.beir import BeirFields
from encore.errors import EncoreError

READ = 16 * 2**20  # bytes of a file that are read, packed or not; what follows in a larger one is taken to be alike


def counted(fields: BeirFields) -> dict[str, Any]:
    """Passages, queries by split, and mean words of both, as ``Stated`` has them; nothing of what cannot be read."""
    try:
        paths = fields.paths()
        passages, words = _texts(paths["corpus"])
        _, query_words = _texts(paths["queries"])
        queries = {name: _queries(paths[role]) for name in fields.splits if (role := f"qrels of {name}") in paths}
    except (EncoreError, OSError, EOFError, ValueError, AttributeError):
        return {}  # what is wrong the collection's own job says, with file and line
    return {"passages": passages, "words": words, "query_words": query_words, "queries": queries}


def _texts(path: Path) -> tuple[int, int]:
    """How many rows a file of JSON lines has, and the mean words of their titles and texts, 1 at least."""
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


def _queries(path: Path) -> int:
    """How many queries a file of judgments asks; their lines stand together."""
    queries, last = 0, b""
    with path.open("rb") as file:
        for line in file:
            name = line.split(None, 1)[0] if line.strip() else last
            queries, last = queries + (name != last), name
    return max(1, queries - 1)  # the header counts as one


def _opened(path: Path, file: IO[bytes]) -> IO[bytes]:
    return cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if path.suffix == ".gz" else file

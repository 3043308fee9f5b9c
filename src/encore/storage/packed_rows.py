"""JSON lines that several processes pack: gzip, a member for each batch of rows, which readers take as one file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from isal import igzip

from encore.storage.files import GZIP_LEVEL, replacing
from encore.storage.processes import shared_in_order

TOGETHER = 256  # rows of a member


def write_packed_jsonl(path: Path, rows: Iterable[dict[str, Any]], processes: int = 1) -> None:
    """Write one JSON object a line, compressed; equal rows give equal bytes, whatever the number of processes is.

    Raises:
        UnicodeEncodeError: a text is no UTF-8.
    """
    rows = iter(rows)
    batches = iter(lambda: list(islice(rows, TOGETHER)), [])
    with replacing(path) as temporary, temporary.open("wb") as file:
        for packed in shared_in_order(_packed, batches, processes):
            file.write(packed)


def _packed(rows: list[dict[str, Any]]) -> bytes:
    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows]
    return igzip.compress("".join(lines).encode(), compresslevel=GZIP_LEVEL, mtime=0)

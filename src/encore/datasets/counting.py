"""Counts of a user's files before anything is built of them; of large files estimated from their first part."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from encore.storage.text_files import unpacked

READ = 16 * 2**20  # bytes of text that are counted; the rest of a larger file is taken to be alike


def estimated(path: Path, count: Callable[[Any], Mapping[str, int]]) -> dict[str, float]:
    """The sums of what each row of a file of JSON lines counts, packed or not.

    Raises:
        OSError, EOFError, ValueError: the file cannot be read, or a row of it is no JSON.
    """
    total, size, seen = Counter[str](), path.stat().st_size, 0
    with path.open("rb") as packed, unpacked(packed, path.suffix) as lines:
        for line in lines:
            total.update(count(json.loads(line)) if line.strip() else {})
            seen += len(line)
            if seen > READ and packed.tell() < size:
                break
        share = packed.tell() / size
    return {name: number / share for name, number in total.items()}

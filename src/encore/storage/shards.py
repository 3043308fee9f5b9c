"""The folder of a shard: how it is called, and whether its vectors were removed."""

import re
from pathlib import Path

NAME = re.compile(r"(\d{3,})-of-(\d{3,})")
VECTORS = "index"  # the one file of an artifact that may be emptied, see encore.plan.vectors


def has_no_vectors(folder: Path) -> bool:
    """Whether a folder is a shard whose vectors were removed: its ``index`` is an empty file."""
    file = folder / VECTORS
    return NAME.fullmatch(folder.name) is not None and file.is_file() and file.stat().st_size == 0

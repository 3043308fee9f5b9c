"""The files of a source in the folder that it was unpacked into."""

from collections.abc import Sequence
from pathlib import Path

from encore.errors import EncoreError

RECORDS = {"manifest.json", "run.json"}  # what every artifact has besides its own files


def files(folder: Path) -> list[Path]:
    """Every file of a source, by name."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in RECORDS)


def file(folder: Path, endings: Sequence[str]) -> Path:
    """The one file of a source that ends so."""
    found = [path for path in files(folder) if path.name.endswith(tuple(endings))]
    if len(found) != 1:
        names = ", ".join(path.name for path in files(folder)) or "nothing"
        raise EncoreError(
            f"{folder} needs one file that ends in {' or '.join(endings)}, and has {names}; name another source"
        )
    return found[0]

"""The files of a source in the folder that it was unpacked into, and files of scores; planning asks for them too."""

from collections.abc import Sequence
from pathlib import Path

from encore.errors import EncoreError

RECORDS = {"manifest.json", "run.json"}  # what every artifact has besides its own files
ENDINGS = (".tsv", ".tsv.gz", ".txt", ".txt.gz")  # of files of scores


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


def score_files(source: str) -> dict[str, Path]:
    """A file itself, or all files of scores in a folder, by name."""
    path = Path(source)
    if path.is_dir():
        found = {file.name: file for file in sorted(path.iterdir()) if file.name.endswith(ENDINGS)}
    else:
        found = {path.name: path} if path.is_file() else {}
    if not found:
        raise EncoreError(
            f"`teacher_scores: {source}` is neither a file nor a folder of files that end in {', '.join(ENDINGS)}; "
            "put the published scores there, or name `teachers` instead"
        )
    return found

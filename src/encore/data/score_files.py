"""Which files hold the published scores that a step names: planning asks this, so nothing heavy is imported."""

from pathlib import Path

from encore.errors import EncoreError

ENDINGS = (".tsv", ".tsv.gz", ".txt", ".txt.gz")


def score_files(source: str) -> dict[str, Path]:
    """A file itself, or all files of scores in a folder, by name.

    Raises:
        EncoreError: there is none.
    """
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

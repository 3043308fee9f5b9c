"""Where texts and judgments come from: every kind of source is brought into one common form (``common.py``)."""

from pathlib import Path
from typing import Any

from encore.collections import beir, pydocs
from encore.collections.beir import BeirFields
from encore.collections.fields import CollectionFields, Split
from encore.collections.pydocs import PydocsFields
from encore.errors import EncoreError

__all__ = ["KINDS", "CollectionFields", "Split", "build"]

KINDS: dict[str, type[CollectionFields]] = {"pydocs": PydocsFields, "beir": BeirFields}


def build(
    kind: str, spec: dict[str, Any], folder: Path, *, source: Path | None = None, processes: int = 1
) -> dict[str, Any]:
    """Write the collection that ``spec`` (what ``CollectionFields.resolve`` gave) describes; returns its counts.

    ``source`` is the folder that a kind with files of its own is read from.

    Raises:
        EncoreError: the kind is unknown, or its source is missing, damaged or not what ``spec`` was made from.
    """
    if kind == "pydocs":
        return pydocs.build(spec, folder, processes)
    if kind == "beir" and source is not None:
        return beir.build(spec, folder, source)
    if kind == "beir":
        raise EncoreError("a collection of kind beir needs --source, the folder that holds its files")
    raise EncoreError(f"unknown kind of collection {kind!r}; choose one of {', '.join(KINDS)}")

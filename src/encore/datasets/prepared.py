"""A collection that is in the common form already, in a folder or in an archive of folders.

The folder is one that ``data/collection.py`` describes, such as those in ``results/collections``; ``.jsonl`` may be
packed (``.gz``) or not. Every row and judgment is checked as those of other kinds are.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from encore.config.datasets import CollectionSpec, KnownSize
from encore.data import qrels
from encore.data.collection import NEGATIVES, Collection, Row, write_collection
from encore.data.text_fields import Form
from encore.data.validation import Located
from encore.datasets.archives import STATISTICS, FolderFields, add_statistics, checked_rows, opened
from encore.datasets.kinds import BuildInputs, Kind
from encore.errors import EncoreError
from encore.storage.files import read_object


class _Named(BaseModel):
    id: str = Field(alias="_id")


class _Metadata(BaseModel):
    cluster: str = ""


class _Query(_Named):
    text: str
    metadata: _Metadata = _Metadata()


class _Answers(_Named):
    answers: list[str]


class _Section(BaseModel):
    title: str
    sentences: list[str]


class _Link(BaseModel):
    section: int
    to: str
    anchor: int


class _Article(_Named):
    title: str
    sections: list[_Section]
    links: list[_Link]


ROWS: dict[str, type[BaseModel]] = {"corpus": _Named, "queries": _Query, "answers": _Answers, "articles": _Article}


class PreparedFields(FolderFields):
    """An entry of the catalogue with ``kind: prepared``."""

    def resolve(self) -> dict[str, Any]:
        """The content's identity: the folder, and digests of the files or of the archive."""
        return {"kind": self.kind, "folder": self.folder, **self.identity(self.folder)}

    def known_size(self) -> KnownSize:
        """The counts that a folder's ``statistics.json`` has; nothing of an archive, or without that file."""
        try:
            counts = read_object(Path(self.path, self.folder, STATISTICS), "correct or remove it")
            queries = {split: float(each["queries"]) for split, each in counts["splits"].items()}
            articles, sections = (float(counts[name]) if name in counts else None for name in ("articles", "sections"))
            return KnownSize(float(counts["passages"]), articles=articles, sections=sections, queries=queries)
        except (EncoreError, ValueError, KeyError, TypeError, AttributeError):
            return KnownSize()  # what is wrong is said when the collection is built


class PreparedSpec(CollectionSpec):
    """The same fields, resolved: ``path`` only of what is shipped with Encore."""

    path: str = ""
    folder: str


def build_prepared(spec: PreparedSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, a resolved ``PreparedFields``, describes; returns its counts."""
    with opened(spec.path, spec.content, inputs, spec.folder) as place:
        source = place / spec.folder
        given = Collection(source)
        judged = [split for split in given.splits() if given.is_judged(split)]
        counts = write_collection(
            folder,
            _rows(source, "corpus"),
            _rows(source, "queries"),
            {split: qrels.lines(source / "qrels" / f"{split}.tsv") for split in judged},
            _rows(source, "articles"),
            form=Form.read(source),
            answers=_rows(source, "answers"),
            questions={split: given.query_ids(split) for split in given.splits() if split not in judged},
        )
        if (source / NEGATIVES).is_dir():
            shutil.copytree(source / NEGATIVES, folder / NEGATIVES)
        return add_statistics(folder, source, counts)


def _rows(source: Path, name: str) -> Iterable[Row]:
    """Rows of a file, packed or not; none if there is no such file."""
    for path in (source / f"{name}.jsonl", source / f"{name}.jsonl.gz"):
        if path.is_file():
            return Located(path, ((line, row) for line, row, _ in checked_rows(path, ROWS[name])))
    return ()


KIND = Kind(PreparedFields, PreparedSpec, build_prepared)

"""Whole docstrings as documents: pydocs' objects and queries again, with all of each body instead of its beginning.

They stand for MS MARCO's documents, whose text is title, address and body. Here these are the object's dotted name, the
path of its module and the body without its summary, the summary being the query. A name often says what its object does
(``sort_values``: "Sort by the values ..."), so a title or an address that shares a content word with the object's own
query is left out: what is left cannot be what finds the document.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from encore.config.datasets import MadeFrom
from encore.data.collection import Collection, Judgment, Row, write_collection
from encore.data.text_fields import Form, FormFields, Segments
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.pydocs.derived import PydocsObject, objects

TITLE_ADDRESS_BODY: Segments = (("title", "url", "text"),)
SPLITS = ("train", "valid", "test", "graded")
BEGINNING = 4  # letters that two words share where they are forms of one
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SHORT = 3  # words of fewer letters say nothing


class DocumentsFields(FormFields):
    """An entry of the catalogue with ``kind: pydocs-documents``."""

    embedded: ClassVar[bool] = True

    kind: Literal["pydocs-documents"]
    of: str = Field(description="the pydocs whose objects, queries and judgments these are")
    segments: Segments = TITLE_ADDRESS_BODY

    @property
    def made_from(self) -> MadeFrom:
        """The collection of docstrings."""
        return MadeFrom(base=self.of)

    def resolve(self) -> dict[str, Any]:
        """The content's identity, in addition to the collection that it is made of."""
        return {"kind": self.kind, **self.form.to_spec()}


def build_documents(spec: dict[str, Any], folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the documents of a pydocs and return their counts.

    Raises:
        EncoreError: the collection that it is made of is missing, or is no pydocs.
    """
    base = inputs.needed_base()
    found = list(objects(base))
    rows = [document(each) for each in found]
    modules = base.clusters()
    queries = (
        {"_id": key, "text": text, "metadata": {"cluster": modules[key]}} for key, text in base.queries().items()
    )
    return write_collection(
        folder,
        rows,
        queries,
        {split: _judgments(base, split) for split in SPLITS if split in base.splits()},
        statistics={
            "titles": sum(bool(row["title"]) for row in rows),
            "addresses": sum(bool(row["url"]) for row in rows),
            "words": sum(len(row["text"].split()) for row in rows),
            "longer_than_passages": sum(
                len(row["text"]) > len(passage["text"]) for row, passage in zip(rows, base.corpus(), strict=True)
            ),
        },
        form=Form.of_spec(spec),
    )


def document(each: PydocsObject) -> Row:
    """An object as a document."""
    fields = {"title": each.id, "url": each.module.replace(".", "/")}
    kept = {name: "" if shares_a_word(text, each.query or "") else text for name, text in fields.items()}
    return {"_id": each.id, **kept, "text": " ".join(each.sentences)}


def shares_a_word(name: str, query: str) -> bool:
    """Whether a dotted name has a word of a query, or one that begins alike (``sorted`` and ``sort_values``)."""
    ours, theirs = _words(name), _words(query)
    return any(one[:BEGINNING] == other[:BEGINNING] for one in ours for other in theirs)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text) if len(word) >= _SHORT}


def _judgments(base: Collection, split: str) -> Iterator[Judgment]:
    for query, grades in base.qrels(split).items():
        for name, grade in grades.items():
            yield Judgment(query, name, grade)


KIND = Kind(DocumentsFields, build_documents)

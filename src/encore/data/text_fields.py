"""The fields of a document that a model reads, their order, and whether they are one text or a pair of texts.

Most collections search `title text`. A web document has an address too, and a ReQA candidate is a pair, a sentence and
the passage around it. A collection that differs from the usual says so in ``form.json``, so whatever reads it
(the token store, Lucene) makes the same text of a document.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from encore.config.datasets import CollectionFields, CollectionSpec
from encore.errors import EncoreError
from encore.storage.files import write_json

NAME = "form.json"
Segments = tuple[tuple[str, ...], ...]
USUAL: Segments = (("title", "text"),)


@dataclass(frozen=True)
class Form:
    """Fields of a document by segment; one segment is one text, two are read `[CLS] first [SEP] second [SEP]`."""

    segments: Segments = USUAL

    def texts(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """A document's text for each segment; a field that is empty or missing adds nothing."""
        return tuple(" ".join(row[name] for name in names if row.get(name)).strip() for names in self.segments)

    @property
    def fields(self) -> set[str]:
        """Every field that is read."""
        return {name for names in self.segments for name in names}

    def to_spec(self) -> dict[str, Any]:
        """The field that a collection's spec gets: none if the form is the usual one, so folders keep their names."""
        return {} if self.segments == USUAL else {"segments": [list(names) for names in self.segments]}

    def write(self, folder: Path) -> None:
        """Keep it in a collection's folder, unless it is the usual one."""
        (folder / NAME).unlink(missing_ok=True)
        if self.segments != USUAL:
            write_json(folder / NAME, {"segments": self.segments})

    @classmethod
    def read(cls, folder: Path) -> "Form":
        """The form of a collection's documents."""
        path = folder / NAME
        if not path.is_file():
            return cls()
        try:
            lists = json.loads(path.read_text(encoding="utf-8"))["segments"]
            return cls(tuple(tuple(names) for names in lists))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise EncoreError(f"{path} is damaged ({error}); make the collection again") from error


class FormFields(CollectionFields):
    """Fields of kinds of collections whose documents may have more than a title and a text."""

    segments: Segments = Field(
        USUAL, description="fields that make a document's text, in order; two lists make it a pair of texts"
    )

    @field_validator("segments")
    @classmethod
    def _one_text_or_a_pair(cls, segments: Segments) -> Segments:
        if len(segments) not in (1, 2) or not all(segments):
            raise ValueError("`segments` needs one list of fields, or two for a pair; none may be empty")
        return segments

    @property
    def form(self) -> Form:
        """The fields of a document that are read, by segment."""
        return Form(self.segments)


class FormSpec(CollectionSpec):
    """The same fields, resolved."""

    segments: Segments = USUAL

    @property
    def form(self) -> Form:
        """The fields of a document that are read, by segment."""
        return Form(self.segments)

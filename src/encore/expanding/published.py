"""Predicted queries as they are published, read beside the corpus that they are of.

Three forms, by the file's ending, each with one line a passage in the corpus' order and perhaps packed (``.gz``):
``.jsonl`` has objects ``{"id", "predicted_queries": [...]}``, ``.tsv`` an id, a tab and the predictions in one text,
and ``.txt`` that text alone, as docTTTTTquery gives it.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path

from encore.errors import EncoreError
from encore.storage import open_text

Line = tuple[str | None, list[str]]  # the passage's id, if the line says it, and its queries


def predicted(path: Path, names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """The queries of each passage, by id.

    Args:
        names: the ids of the corpus, in its order.

    Raises:
        EncoreError: a line is not of the file's form, is another passage's, is missing or is one too many; says which.
    """
    for number, (name, line) in enumerate(zip_longest(names, _lines(path)), 1):
        if line is None:
            raise EncoreError(
                f"{path} ends after line {number - 1}, and passage {name} has no predictions; it needs a line for each "
                "passage of the corpus"
            )
        if name is None:
            raise EncoreError(
                f"{path}, line {number}: the corpus has {number - 1} passages, so no line {number} can be; are they "
                "of another corpus?"
            )
        said, queries = line
        if said is not None and said != name:
            raise EncoreError(
                f"{path}, line {number}: it is about passage {said}, and the corpus has {name} there; put the lines "
                "into the corpus' order"
            )
        yield name, queries


def _lines(path: Path) -> Iterator[Line]:
    read = _FORMS.get(Path(path.name.removesuffix(".gz")).suffix)
    if read is None:
        raise EncoreError(f"{path}: predictions are read from {', '.join(_FORMS)}, each plain or .gz; rename the file")
    number = 1
    try:
        with open_text(path) as file:
            for line in file:
                yield read(line.rstrip("\r\n"))
                number += 1
    except (ValueError, KeyError, TypeError, EOFError, OSError, zlib.error) as error:
        raise EncoreError(f"{path}, line {number}: no predictions ({error!r}); mend or replace the file") from error


def _of_object(line: str) -> Line:
    row = json.loads(line)
    queries = row["predicted_queries"]
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise ValueError("predicted_queries is no list of texts")
    return str(row["id"]), queries


def _of_columns(line: str) -> Line:
    name, text = line.split("\t")
    return name, [text]


def _of_text(line: str) -> Line:
    return None, [line]


_FORMS: dict[str, Callable[[str], Line]] = {".jsonl": _of_object, ".tsv": _of_columns, ".txt": _of_text}

"""Predicted queries: as they are published, and in the common form.

Published ones are read next to the corpus that they are of, in three forms, by the file's ending, each with one line a
passage in the corpus' order and perhaps packed (``.gz``): ``.jsonl`` has objects ``{"id", "predicted_queries":
[...]}``, ``.tsv`` an id, a tab and the predictions in one text, and ``.txt`` that text alone. docTTTTTquery publishes a
folder instead, in which each file holds one sample of the passages of one part of the corpus
(``predicted_queries_topk_sample012.txt003-1004000``: sample 12, part 3).

The common form is ``predicted_queries.jsonl.gz``, a line ``{"_id", "queries"}`` for each passage in the corpus' order,
so that texts and queries are read together and neither is kept in memory.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from encore.data import unpacked
from encore.data.collection import Collection
from encore.errors import EncoreError
from encore.storage.files import read_jsonl, write_jsonl
from encore.storage.text_files import numbered_lines, numbered_objects

NAME = "predicted_queries.jsonl.gz"
PART = re.compile(r".*sample(?P<sample>\d+)\.txt(?P<part>\d+)(?:-\d+)?(?:\.gz)?")

Line = tuple[str | None, list[str]]  # the passage's id, if the line says it, and its queries


def predicted(path: Path, names: Iterable[str], samples: int | None = None) -> Iterator[tuple[str, list[str]]]:
    """The queries of each passage, by id.

    Args:
        path: a file, or a folder of one that was fetched or of files of one sample each.
        names: the ids of the corpus, in its order.
        samples: of a folder of samples, how many are taken, the first; all without.
    """
    for number, (name, line) in enumerate(zip_longest(names, _lines(path, samples)), 1):
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
        passage, queries = line
        if passage is not None and passage != name:
            raise EncoreError(
                f"{path}, line {number}: it is about passage {passage}, and the corpus has {name} there; put the lines "
                "into the corpus' order"
            )
        yield name, queries


def _lines(path: Path, samples: int | None) -> Iterator[Line]:
    if path.is_dir():
        parts = _parts(path)
        yield from _joined(path, parts, samples) if parts else _of_file(unpacked.file(path, ENDINGS))
    else:
        yield from _of_file(path)


def _parts(folder: Path) -> dict[int, dict[int, Path]]:
    """The file of each sample, by part of the corpus."""
    found: dict[int, dict[int, Path]] = {}
    for path in unpacked.files(folder):
        if match := PART.fullmatch(path.name):
            found.setdefault(int(match["part"]), {})[int(match["sample"])] = path
    return found


def _joined(folder: Path, parts: dict[int, dict[int, Path]], count: int | None) -> Iterator[Line]:
    """Every passage's samples, part by part; as many files are open as samples are taken."""
    samples = range(count if count is not None else 1 + max(max(files) for files in parts.values()))
    for part in range(1 + max(parts)):
        missing = [sample for sample in samples if sample not in parts.get(part, {})]
        if missing:
            raise EncoreError(f"{folder} lacks sample {missing[0]} of part {part}; fetch it again, or lower `samples`")
        paths = [parts[part][sample] for sample in samples]
        for numbered in zip_longest(*map(numbered_lines, paths)):
            if None in numbered:
                short, long = paths[numbered.index(None)], paths[next(i for i, each in enumerate(numbered) if each)]
                raise EncoreError(f"{short} ends before {long.name} does; replace the files of part {part}")
            yield None, [line for _, line in numbered]
        print(f"part {part + 1} of {1 + max(parts)} is read", flush=True)


def _of_file(path: Path) -> Iterator[Line]:
    read = _FORMS.get(Path(path.name.removesuffix(".gz")).suffix)
    if read is None:
        raise EncoreError(f"{path}: predictions are read from {', '.join(_FORMS)}, each plain or .gz; rename the file")
    rows: Iterable[tuple[int, Any]] = numbered_objects(path) if read is _of_object else numbered_lines(path)
    for number, row in rows:
        try:
            found = read(row)
        except (ValueError, KeyError, TypeError) as error:
            raise EncoreError(f"{path}, line {number}: no predictions ({error!r}); fix or replace the file") from error
        yield found


def _of_object(row: dict[str, Any]) -> Line:
    queries = row["predicted_queries"]
    if not isinstance(queries, list) or not all(isinstance(query, str) for query in queries):
        raise ValueError("predicted_queries is not a list of texts")
    return str(row["id"]), queries


def _of_columns(line: str) -> Line:
    name, text = line.split("\t")
    return name, [text]


def _of_text(line: str) -> Line:
    return None, [line]


_FORMS: dict[str, Callable[[Any], Line]] = {".jsonl": _of_object, ".tsv": _of_columns, ".txt": _of_text}
ENDINGS = [ending + packed for ending in _FORMS for packed in ("", ".gz")]


def write_predicted_queries(folder: Path, predicted: Iterable[tuple[str, list[str]]]) -> dict[str, int]:
    """Write the queries of each passage, by id, and give their counts."""
    counts = {"passages": 0, "queries": 0, "empty": 0}

    def counted() -> Iterator[dict[str, object]]:
        for name, queries in predicted:
            kept = [query for query in queries if query]
            counts["passages"] += 1
            counts["queries"] += len(kept)
            counts["empty"] += len(queries) - len(kept)
            yield {"_id": name, "queries": kept}

    write_jsonl(folder / NAME, counted())
    return counts


def expanded(collection: Collection, folder: Path) -> Iterator[tuple[str, str]]:
    """Each passage's id, and its text with its predicted queries behind it."""
    for text, row in zip_longest(collection.texts(), read_jsonl(folder / NAME)):
        if text is None or row is None or text[0] != row["_id"]:
            raise EncoreError(f"{folder / NAME} has other passages than {collection.folder}; predict the queries again")
        yield text[0], " ".join([*text[1], *row["queries"]])

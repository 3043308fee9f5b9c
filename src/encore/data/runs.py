"""TREC runs, once for every stage: six columns, gzip, an ir_metadata header, and one rule for ties.

The header is YAML between ``# ir_metadata.start`` and ``# ir_metadata.end`` (ir-metadata.org, schema 0.1). It stands
in the comment field of the gzip header (RFC 1952, FCOMMENT) and not in the text, because trec_eval, pytrec_eval and
``ir_measures`` take each line of the text for a result. ``head run.trec.gz`` shows it: that field is not compressed.
It holds no time, host or version, so that equal results are equal bytes.
"""

import gzip
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import yaml
from numpy.typing import ArrayLike, NDArray

from encore.errors import EncoreError
from encore.storage.files import replacing

START, END = "# ir_metadata.start", "# ir_metadata.end"
_FCOMMENT = 0x10
_LEVEL = 1  # of compression: a third of the time of zlib's usual 6, for 18% more bytes
_COLUMNS = ("query", "Q0", "document", "place", "score", "tag")
_GZIP = struct.pack(
    "<3BBI2B", 0x1F, 0x8B, 8, _FCOMMENT, 0, 0, 255
)  # deflate, a comment follows, no time, unknown system


@dataclass(frozen=True)
class Ranking:
    """One query's answer: document ids and float32 scores of equal length, best first."""

    documents: list[str]
    scores: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.documents)


Run = dict[str, Ranking]  # by query id; queries without an answer are absent


def rank(documents: Sequence[str], scores: ArrayLike, depth: int | None = None) -> Ranking:
    """Order documents by descending float32 score, equal scores by descending document id as trec_eval does, and cut.

    Ids compare by code point, which is the order of their UTF-8 bytes.

    Raises:
        EncoreError: a score is not a finite number or a document occurs twice.
    """
    rounded = np.asarray(scores, dtype=np.float32) + np.float32(
        0
    )  # adding zero turns -0.0, which prints differently, into 0.0
    if not np.isfinite(rounded).all():
        where = documents[int(np.flatnonzero(~np.isfinite(rounded))[0])]
        raise EncoreError(f"the score of document {where} is not a finite number; the model that gave it has diverged")
    if len(set(documents)) < len(documents):
        raise EncoreError("a document occurs twice in one ranking; remove the duplicate from the index or the run")
    if _in_order(documents, rounded):
        return Ranking(list(documents[:depth]), rounded[:depth])
    pairs = sorted(zip(rounded.tolist(), documents, strict=True), reverse=True)[:depth]
    values = np.array([score for score, _ in pairs], dtype=np.float32)
    return Ranking([document for _, document in pairs], values)


def describe(tag: str, *, collection: str, split: str, retrieval: list[dict[str, Any]]) -> dict[str, Any]:
    """The ir_metadata of our own runs; ``retrieval`` lists the stages with ``name``, ``method`` and parameters."""
    return {
        "schema-version": 0.1,
        "tag": tag,
        "platform": {"software": {"libraries": {"python": ["encore-ir"]}}},
        "research goal": {"task": "ad hoc retrieval"},
        "implementation": {"source": {"lang": ["python"], "repository": "encore"}},
        "method": {"automatic": True, "score ties": "descending document id", "retrieval": retrieval},
        "data": {"test collection": {"name": collection, "topics": split}},
    }


def write_run(path: Path, run: Mapping[str, Ranking], header: Mapping[str, Any]) -> None:
    """Write a run as gzipped TREC lines, queries in the mapping's order; ``header["tag"]`` is the last column.

    Rankings are put into the order of ``rank``; equal runs and headers give equal bytes.

    Raises:
        EncoreError: an id or the tag is empty or has blanks, a query id starts like a comment, or ``rank`` refuses.
    """
    tag = checked_column(str(header["tag"]), "tag")
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(_GZIP + _comment(header) + b"\0")
        packer, checksum, length = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS), 0, 0
        for block in _blocks(path, run, tag):
            checksum, length = zlib.crc32(block, checksum), length + len(block)
            file.write(packer.compress(block))
        file.write(packer.flush() + struct.pack("<2I", checksum, length & 0xFFFFFFFF))


def read_run(path: Path) -> Run:
    """Read a TREC run, gzipped or not, ours or another program's, into the order of ``rank``.

    Comment lines (``# …``) are read past, as other programs write their ir_metadata so.

    Raises:
        EncoreError: the file is missing or damaged, or a line is not six columns with a score.
    """
    try:
        table = _read_at_once(path)
    except (pa.ArrowException, OSError):  # unusual or damaged, and only the slower way tells which, and where
        table = _read_by_line(path)
    queries, documents = (table[name].combine_chunks() for name in ("query", "document"))
    of_line = queries.indices.to_numpy()
    order = np.argsort(of_line, kind="stable")  # some programs do not keep a query's lines together
    bounds = np.searchsorted(of_line[order], np.arange(len(queries.dictionary) + 1)).tolist()
    names = np.array(documents.dictionary.to_pylist(), dtype=object)[documents.indices.to_numpy()[order]]
    scores = table["score"].to_numpy()[order]
    return {
        query: _ranked(f"{path}, query {query}", names[first:end].tolist(), scores[first:end])
        for query, (first, end) in zip(queries.dictionary.to_pylist(), pairwise(bounds), strict=True)
    }


def read_header(path: Path) -> dict[str, Any]:
    """The ir_metadata of a run that ``write_run`` wrote."""
    with path.open("rb") as file:
        start = file.read(len(_GZIP))
        text = file.read(1 << 16).partition(b"\0")[0].decode("latin-1") if start == _GZIP else ""
    lines = text.splitlines()
    if not lines or lines[0] != START or END not in lines:
        raise EncoreError(f"{path} has no ir_metadata header; write the run again with encore")
    header: dict[str, Any] = yaml.safe_load("\n".join(line.removeprefix("# ") for line in lines[1 : lines.index(END)]))
    return header


def checked_column(name: str, kind: str) -> str:
    """An id or tag that a column of a run can hold; ``kind`` says in the message what it is."""
    if name.split() != [name]:
        raise EncoreError(
            f"{kind} {name!r} is empty or has blanks, which TREC's columns cannot hold; rename it in the collection"
        )
    return name


def _comment(header: Mapping[str, Any]) -> bytes:
    """The header as comment lines; YAML escapes all but ASCII, since RFC 1952 knows no UTF-8 here."""
    text = yaml.safe_dump(dict(header), sort_keys=False, allow_unicode=False, width=1000)
    return "\n".join([START, *(f"# {line}" for line in text.splitlines()), END, ""]).encode("ascii")


def _in_order(documents: Sequence[str], scores: NDArray[np.float32]) -> bool:
    """Whether a ranking stands as ``rank`` would put it, which most do."""
    falls = scores[:-1] > scores[1:]
    return all(
        scores[place] == scores[place + 1] and documents[place] > documents[place + 1]
        for place in np.flatnonzero(~falls).tolist()
    )


def _blocks(path: Path, run: Mapping[str, Ranking], tag: str) -> Iterator[bytes]:
    """Each query's lines. They are millions, so each different id is checked once, and what can be is done at once."""
    places = [f" {place} " for place in range(1, max(map(len, run.values()), default=0) + 1)]
    fitting: set[str] = set()  # document ids that the column can hold
    for query, ranking in run.items():
        if checked_column(query, "query id").startswith("#"):
            raise EncoreError(f"query id {query!r} starts like a comment; rename the query in the collection")
        ordered = _ranked(f"{path}, query {query}", ranking.documents, ranking.scores)
        if not fitting.issuperset(ordered.documents):
            fitting.update(checked_column(document, "document id") for document in ordered.documents)
        yield _lines(query, ordered, places, tag)


def _lines(query: str, ranking: Ranking, places: Sequence[str], tag: str) -> bytes:
    """One query's lines; ``places`` are the texts of the ranks, and perhaps of more."""
    texts = pa.array(ranking.scores).cast(pa.string()).to_pylist()  # the shortest that read back equal
    lines = map("".join, zip(ranking.documents, places, texts, strict=False))
    return (f"{query} Q0 " + f" {tag}\n{query} Q0 ".join(lines) + f" {tag}\n").encode() if texts else b""


def _read_at_once(path: Path) -> pa.Table:
    """Query and document, as dictionaries in the order of their first line, and score of each line.

    Raises:
        pa.ArrowException, OSError: there are other blanks than one space between columns, comments, or damage.
    """
    name = pa.dictionary(pa.int32(), pa.string())
    with pa.input_stream(str(path), compression="gzip" if _packed(path) else None) as file:
        table = csv.read_csv(
            file,
            csv.ReadOptions(column_names=_COLUMNS, use_threads=False, block_size=1 << 23),
            csv.ParseOptions(delimiter=" ", quote_char=False),
            csv.ConvertOptions(
                include_columns=["query", "document", "score"],
                column_types={"query": name, "document": name, "score": pa.float64()},
                null_values=[],
            ),
        )
    table = table.unify_dictionaries()
    queries, documents = (table[column].chunk(0).dictionary.to_pylist() for column in ("query", "document"))
    names = queries + documents
    if " ".join(names).split() != names or any(query.startswith("#") for query in queries):
        raise pa.ArrowInvalid("an id has blanks or is a comment")
    return table


def _read_by_line(path: Path) -> pa.Table:
    """The table of ``_read_at_once`` from any blanks and comments, or the number of the line that is wrong."""
    queries, documents, scores = [], [], []
    for number, line in _numbered(path):
        columns = line.split()
        if not columns or columns[0].startswith("#"):
            continue
        if len(columns) != len(_COLUMNS):
            raise EncoreError(
                f"{path}, line {number}: {len(columns)} columns instead of TREC's six; write the run again"
            )
        try:
            scores.append(float(columns[4]))
        except ValueError:
            raise EncoreError(
                f"{path}, line {number}: the score {columns[4]!r} is not a number; write the run again"
            ) from None
        queries.append(columns[0])
        documents.append(columns[2])
    names = (pa.array(column, pa.string()).dictionary_encode() for column in (queries, documents))
    return pa.table([*names, pa.array(scores, pa.float64())], ["query", "document", "score"])


def _packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == _GZIP[:2]


def _numbered(path: Path) -> Iterable[tuple[int, str]]:
    """A run's lines with their numbers; damage becomes one clear line."""
    if not path.is_file():
        raise EncoreError(f"run {path} is missing; run the command that makes it again")
    try:
        with gzip.open(path, "rt", encoding="utf-8") if _packed(path) else path.open(encoding="utf-8") as file:
            yield from enumerate(file, 1)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise EncoreError(
            f"run {path} is damaged ({error}); delete it and run the command that makes it again"
        ) from error


def _ranked(place: str, documents: Sequence[str], scores: ArrayLike) -> Ranking:
    """``rank``, whose complaints here say in which file and query."""
    try:
        return rank(documents, scores)
    except EncoreError as error:
        raise EncoreError(f"{place}: {error}") from error

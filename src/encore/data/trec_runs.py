"""Runs as text: TREC's six columns, gzip, and an ir_metadata header. Others read ours, and we read others'.

The header is YAML between ``# ir_metadata.start`` and ``# ir_metadata.end`` (ir-metadata.org, schema 0.1). It is
in the comment field of the gzip header (RFC 1952, FCOMMENT) and not in the text, because trec_eval, pytrec_eval and
``ir_measures`` take each line of the text for a result. ``head run.trec.gz`` shows it: that field is not compressed.
It holds no time, host or version, so that equal results are equal bytes.
"""

import gzip
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import yaml
from isal import isal_zlib

from encore.data.rankings import Run, RunMatrices, check_columns, checked_column
from encore.errors import EncoreError
from encore.storage.files import GZIP_LEVEL, replacing

START, END = "# ir_metadata.start", "# ir_metadata.end"
_FCOMMENT = 0x10
LINES = 2**18  # that are made at once
_COLUMNS = ("query", "Q0", "document", "place", "score", "tag")
_GZIP = struct.pack(
    "<3BBI2B", 0x1F, 0x8B, 8, _FCOMMENT, 0, 0, 255
)  # deflate, a comment follows, no time, unknown system


def write_trec(path: Path, run: Run, header: Mapping[str, Any]) -> None:
    """Write a run as gzipped TREC lines, queries in their order; ``header["tag"]`` is the last column.

    Equal runs and headers give equal bytes.
    """
    tag = checked_column(str(header["tag"]), "tag")
    try:
        matrices = RunMatrices.of(run)
        check_columns(matrices.queries, "query id")
    except EncoreError as error:
        raise EncoreError(f"{path}, {error}") from error
    if comments := [query for query in matrices.queries if query.startswith("#")]:
        raise EncoreError(f"query id {comments[0]!r} starts like a comment; rename the query in the collection")
    # YAML escapes all but ASCII, since RFC 1952 knows no UTF-8 in comments
    text = yaml.safe_dump(dict(header), sort_keys=False, allow_unicode=False, width=1000)
    comment = "\n".join([START, *(f"# {line}" for line in text.splitlines()), END, ""]).encode("ascii")
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(_GZIP + comment + b"\0")
        packer, checksum, length = isal_zlib.compressobj(GZIP_LEVEL, isal_zlib.DEFLATED, -isal_zlib.MAX_WBITS), 0, 0
        for block in _blocks(matrices, tag):
            checksum, length = isal_zlib.crc32(block, checksum), length + block.size
            file.write(packer.compress(block))
        file.write(packer.flush() + struct.pack("<2I", checksum, length & 0xFFFFFFFF))


def read_trec(path: Path) -> RunMatrices:
    """Read a TREC run, gzipped or not, ours or another program's, into the order of ``rank``.

    Comment lines (``# …``) are read past, as other programs write their ir_metadata so.
    """
    try:
        table = _read_at_once(path)
    except (pa.ArrowException, OSError):  # unusual or damaged, and only the slower way tells which, and where
        table = _read_by_line(path)
    try:
        return _arranged(table)
    except EncoreError as error:
        raise EncoreError(f"{path}, {error}") from error


def read_lines(lines: BufferedReader, queries: Sequence[str]) -> RunMatrices:
    """The run in TREC's lines that a program just writes, one blank between columns, into the order of ``rank``.

    Args:
        lines: to be read once, from its beginning.
        queries: all ids that may occur, in the order that the run is to have.

    Raises:
        pa.ArrowInvalid: a line is not six columns with a score.
    """
    return _arranged(_table(lines), queries) if lines.peek(1) else RunMatrices.of({})


def _arranged(table: pa.Table, order: Sequence[str] | None = None) -> RunMatrices:
    """A run from its lines, with queries in an order, or in that of their first lines."""
    queries, documents = (table[name].combine_chunks() for name in ("query", "document"))
    found = queries.dictionary.to_pylist()
    named = set(found)
    ordered = found if order is None else [query for query in order if query in named]
    place = {query: number for number, query in enumerate(ordered)}
    return RunMatrices.arranged(
        ordered,
        documents.dictionary.to_pylist(),
        np.array([place[query] for query in found], np.int64)[queries.indices.to_numpy()],
        documents.indices.to_numpy(),
        table["score"].to_numpy(),
    )


def _blocks(run: RunMatrices, tag: str) -> Iterator[pa.Buffer]:
    """The lines of some queries at a time; scores are the shortest numbers that read back equal."""
    import pyarrow.compute as pc

    text = pa.large_string()
    names, queries = run.documents.texts(), pa.array([f"{query} Q0" for query in run.queries], text)
    ranks = pa.array([str(rank) for rank in range(1, run.rows.shape[1] + 1)], text)
    last, blank = pa.scalar(f"{tag}\n", text), pa.scalar(" ", text)
    step = max(1, LINES // max(1, run.rows.shape[1]))
    for first in range(0, len(run), step):
        rows, scores = run.rows[first : first + step], run.scores[first : first + step]
        query, column = np.nonzero(rows >= 0)
        lines = pc.binary_join_element_wise(
            queries.take(pa.array(query + first)),
            names.take(pa.array(rows[query, column])),
            ranks.take(pa.array(column)),
            pa.array(scores[query, column]).cast(text),
            last,
            blank,
        )
        yield lines.buffers()[2]


def _read_at_once(path: Path) -> pa.Table:
    """Query and document, as dictionaries in the order of their first line, and score of each line.

    Raises:
        pa.ArrowException, OSError: there are other blanks than one space between columns, comments, or damage.
    """
    with pa.input_stream(str(path), compression="gzip" if _packed(path) else None) as file:
        table = _table(file)
    queries, documents = (table[column].chunk(0).dictionary.to_pylist() for column in ("query", "document"))
    names = queries + documents
    if " ".join(names).split() != names or any(query.startswith("#") for query in queries):
        raise pa.ArrowInvalid("an id has blanks or is a comment")
    return table


def _table(file: Any) -> pa.Table:
    name = pa.dictionary(pa.int32(), pa.string())
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
    return table.unify_dictionaries()


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
        with gzip.open(path, "rt", encoding="utf-8-sig") if _packed(path) else path.open(encoding="utf-8-sig") as file:
            yield from enumerate(file, 1)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise EncoreError(
            f"run {path} is damaged ({error}); delete it and run the command that makes it again"
        ) from error

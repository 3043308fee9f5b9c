"""BM25 by Lucene through Anserini: one process indexes, others search.

Anserini's defaults: the English analyser (lower case, stop words, Porter stems) and Lucene's BM25 (Robertson and
Zaragoza 2009, without the factor k1 + 1), whose document lengths are rounded down to 4 significant bits. Texts of other
languages go through Anserini's analyser of theirs.
"""

import io
import json
import re
import shutil
import struct
import tempfile
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from encore.config.languages import ANALYSED, ENGLISH
from encore.data.rankings import Run, RunMatrices, checked_column
from encore.data.trec_runs import read_lines
from encore.errors import EncoreError
from encore.retrieval import java
from encore.storage.document_ids import DocIds

INDEX = "lucene"
MAJOR = 9  # Lucene's version: whoever raises it raises `impl` of lucene_index, so that a name is of one format
HITS = 4_000_000  # of the queries that one Java process answers, since Anserini keeps all in its heap to the end
SEARCHING_MB = 1024  # of heap that a search takes at most: HITS have room in it
HEAP_OF_A_HIT = 256  # bytes: ids of MS MARCO take 85 and longer ones 116, for which there are two thirds of the heap
_START = 76  # of segment information: index header (45 bytes), two versions (25), documents (4), two flags (2)
_VERSION = slice(45, 49)  # the first version's major part, little-endian
_FOOTER = 16  # magic, algorithm, and the CRC-32 of all before it as 8 big-endian bytes (CodecUtil.writeFooter)
_KEPT = {b"lucene.version", b"source"}  # of a segment's diagnostics
_INDEXER, _SEARCHER = "io.anserini.index.IndexCollection", "io.anserini.search.SearchCollection"


def build_lucene_index(
    documents: Iterable[tuple[str, str]], output: Path, memory_mb: int = 1024, language: str = ENGLISH
) -> int:
    """Index (id, text) pairs into the folder ``lucene`` of ``output`` and return their number.

    ``language`` is that of the texts, by its code. Equal documents give equal bytes, in whatever order they come: they
    are sorted by descending id, so that among equal scores Lucene, which goes by position, cuts where ``rankings.rank``
    would. That takes some 40 bytes of memory for each, and for a while twice the space of the texts on the disk.
    """
    with _scratch(output) as scratch:
        (scratch / "corpus").mkdir()
        count = _write_corpus(scratch / "corpus" / "corpus.jsonl", documents)
        options = {"collection": "JsonCollection", "input": scratch / "corpus", "index": scratch / INDEX}
        options |= {"threads": 1, "memoryBuffer": memory_mb // 2}
        log = java.run(_INDEXER, [*_options(options), *_analyser(language), "-optimize"], memory_mb)
        indexed = re.search(r"indexed: +([\d,]+)", log)
        if indexed is None or int(indexed[1].replace(",", "")) != count:
            raise EncoreError(
                f"Lucene indexed {indexed and indexed[1]} of {count} documents; remove those without text"
            )
        make_reproducible(scratch / INDEX)
        shutil.rmtree(output / INDEX, ignore_errors=True)
        (scratch / INDEX).rename(output / INDEX)
    return count


def search_bm25(
    index: Path,
    queries: Mapping[str, str],
    *,
    k1: float = 0.9,
    b: float = 0.4,
    depth: int = 1000,
    threads: int = 1,
    memory_mb: int = 1024,
    language: str = ENGLISH,
) -> Run:
    """Rank the documents of an index folder (the one that holds ``lucene``) for queries by id.

    Queries are plain words: no character is an operator. One that is empty, or empty after analysis, has no answer and
    is absent from the run. Scores are Lucene's float32, which Anserini prints with six decimals. Java is started once
    for as many queries as its memory has room for; the run does not depend on it.

    Args:
        k1: saturates term frequency.
        b: weighs document length, 0 to 1.
        depth: hits that are kept of a query.
    """
    if not (index / INDEX).is_dir():
        raise EncoreError(f"{index / INDEX} is missing; run the command that makes the index again")
    words = {checked_column(query, "query id"): " ".join(text.split()) for query, text in queries.items()}
    options = {"index": index / INDEX, "topicReader": "TsvString", "hits": depth, "bm25.k1": k1}
    options |= {"bm25.b": b, "threads": threads, "parallelism": 1}
    # Lucene's own scores: without `arbitraryScoreTieBreak` Anserini rounds them and separates ties.
    arguments = ["-bm25", "-quiet", "-arbitraryScoreTieBreak", *_analyser(language), *_options(options)]
    topics = iter([(query, text) for query, text in words.items() if text])
    memory_mb = min(memory_mb, SEARCHING_MB)
    at_once = max(1, min(HITS, memory_mb * 2**20 // HEAP_OF_A_HIT) // depth)
    parts = iter(lambda: dict(islice(topics, at_once)), {})
    return RunMatrices.joined(_answered(part, arguments, memory_mb) for part in parts)


def _answered(topics: Mapping[str, str], arguments: Sequence[str], memory_mb: int) -> RunMatrices:
    """The answers of one Java process to queries that are not empty."""
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
            file.writelines(f"{query}\t{text}\n" for query, text in topics.items())
            file.flush()
            with java.output_of(_SEARCHER, [*arguments, "-topics", file.name], memory_mb) as lines:
                return read_lines(lines, list(topics))
    except OSError as error:
        raise EncoreError(f"cannot write a temporary file ({error}); make room or set TMPDIR, then repeat") from error
    except EncoreError as error:
        if "maxClauseCount" not in str(error):
            raise
        longest = max(topics, key=lambda query: len(set(topics[query].split())))  # Lucene does not name the query
        raise EncoreError(f"{error}; the longest query is {longest}: shorten it in the collection") from error


def _analyser(language: str) -> list[str]:
    """Anserini's options for a language; if it has no analyser for it, the English one without stems and stop words.

    Its programs offer nothing closer to Lucene's standard analyser, which would keep a final ``'s``.
    """
    if language == ENGLISH:
        return []
    return ["-language", language] if language in ANALYSED else ["-stemmer", "none", "-keepStopwords"]


def _options(values: Mapping[str, object]) -> list[str]:
    return [part for name, value in values.items() for part in (f"-{name}", str(value))]


def _write_corpus(path: Path, documents: Iterable[tuple[str, str]]) -> int:
    """Write the documents by descending id, and return their number; only their ids are in memory."""
    starts, unsorted = array("q", [0]), path.with_suffix(".unsorted")

    def written(file: BinaryIO) -> Iterator[str]:
        for name, text in documents:
            line = json.dumps({"id": checked_column(name, "document id"), "contents": text}) + "\n"
            starts.append(starts[-1] + file.write(line.encode()))
            yield name

    with unsorted.open("wb") as file:
        places = DocIds.of(written(file)).places()
    with unsorted.open("rb") as lines, path.open("wb") as corpus:
        for row in np.argsort(-places).tolist():
            lines.seek(starts[row])
            corpus.write(lines.read(starts[row + 1] - starts[row]))
    unsorted.unlink()
    return len(places)


@contextmanager
def _scratch(output: Path) -> Iterator[Path]:
    """A folder next to the result, so that it can be renamed; leftovers of a killed run go first."""
    scratch = output / f".{INDEX}.tmp"
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        yield scratch
    except OSError as error:
        raise EncoreError(
            f"cannot write {output} ({error.strerror or error}); make room or make it writable, then repeat"
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def make_reproducible(index: Path) -> None:
    """Rewrite the information of the one segment in an index folder, and drop the lock file.

    A ``.si`` file (Lucene90SegmentInfoFormat) holds the time, the machine, and two lists in an order that Java draws in
    each process. Everything else that Lucene writes is a function of the documents and the seed.
    """
    (index / "write.lock").unlink(missing_ok=True)
    for path in index.glob("*.si"):
        info = path.read_bytes()
        if b"Lucene90SegmentInfo" not in info[:_START] or int.from_bytes(info[_VERSION], "little") != MAJOR:
            raise EncoreError(f"{path} is not of Lucene {MAJOR}; install a version of pyserini that Encore asks for")
        path.write_bytes(canonical(info))


def canonical(info: bytes) -> bytes:
    """Keep Lucene's version and the segment's source of the diagnostics; sort them, the files and the attributes."""
    body = io.BytesIO(info[_START:-_FOOTER])
    diagnostics, files, attributes = (_read_rows(body, width) for width in (2, 1, 2))
    kept = [pair for pair in diagnostics if pair[0] in _KEPT]
    text = info[:_START] + b"".join(map(_packed, (kept, files, attributes))) + body.read() + info[-_FOOTER:-8]
    return text + struct.pack(">Q", zlib.crc32(text))


def _read_rows(body: io.BytesIO, width: int) -> list[tuple[bytes, ...]]:
    """A counted list of strings (``width`` 1) or of names with values (2)."""
    return [tuple(body.read(_read_number(body)) for _ in range(width)) for _ in range(_read_number(body))]


def _read_number(body: io.BytesIO) -> int:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    byte = body.read(1)[0]
    return byte if byte < 128 else byte - 128 + 128 * _read_number(body)


def _packed(rows: list[tuple[bytes, ...]]) -> bytes:
    """The same of sorted rows; of fewer than 128, and of strings that are shorter."""
    texts = (bytes([len(text)]) + text for row in sorted(rows) for text in row)
    return bytes([len(rows)]) + b"".join(texts)

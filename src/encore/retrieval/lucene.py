"""BM25 by Lucene through Anserini: one process indexes, one searches.

Anserini's defaults: the English analyser (lower case, stop words, Porter stems) and Lucene's BM25 (Robertson and
Zaragoza 2009, without the factor k1 + 1), whose document lengths are rounded down to 4 significant bits.
"""

import heapq
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from encore.data.rankings import Run, checked_column
from encore.data.trec_runs import read_lines
from encore.errors import EncoreError
from encore.retrieval import java
from encore.retrieval.segment import make_reproducible

INDEX = "lucene"
SORTED = 2**27  # characters of documents that are sorted in memory at once
_INDEXER, _SEARCHER = "io.anserini.index.IndexCollection", "io.anserini.search.SearchCollection"


@dataclass(frozen=True)
class Bm25Parameters:
    """``k1`` saturates term frequency, ``b`` weighs document length (0 to 1), ``depth`` is the hits kept a query."""

    k1: float = 0.9
    b: float = 0.4
    depth: int = 1000


def build_lucene_index(documents: Iterable[tuple[str, str]], output: Path, memory_mb: int = 1024) -> int:
    """Index (id, text) pairs into the folder ``lucene`` of ``output`` and return their number.

    Equal documents give equal bytes, in whatever order they come: they are sorted by descending id, so that among
    equal scores Lucene, which goes by position, cuts where ``rankings.rank`` would. That takes some hundred
    megabytes, and for a while twice the texts' room on the disk.

    Raises:
        EncoreError: an id has blanks, Lucene left documents out, the disk is full, or as ``java.run``.
    """
    with _scratch(output) as scratch:
        (scratch / "corpus").mkdir()
        count = _write_corpus(scratch / "corpus" / "corpus.jsonl", documents)
        options = {"collection": "JsonCollection", "input": scratch / "corpus", "index": scratch / INDEX}
        options |= {"threads": 1, "memoryBuffer": memory_mb // 2}
        log = java.run(_INDEXER, [*_options(options), "-optimize"], memory_mb)
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
    index: Path, queries: Mapping[str, str], bm25: Bm25Parameters, *, threads: int = 1, memory_mb: int = 1024
) -> Run:
    """Rank the documents of an index folder (the one that holds ``lucene``) for queries by id.

    Queries are plain words: no character is an operator. One that is empty, or empty after analysis, has no answer and
    is absent from the run. Scores are Lucene's float32, which Anserini prints with six decimals.

    Raises:
        EncoreError: there is no index, a query has more than 1024 different terms (Lucene's limit), or as ``java.run``.
    """
    if not (index / INDEX).is_dir():
        raise EncoreError(f"{index / INDEX} is missing; run the command that makes the index again")
    words = {checked_column(query, "query id"): " ".join(text.split()) for query, text in queries.items()}
    topics = {query: text for query, text in words.items() if text}
    if not topics:
        return {}
    with _topics_file(topics) as path, _longest_named(topics):
        options = _search_options(index, path, bm25, threads)
        with java.output_of(_SEARCHER, options, memory_mb) as lines:
            return read_lines(lines, list(topics))


def _search_options(index: Path, topics: Path, bm25: Bm25Parameters, threads: int) -> list[str]:
    """``arbitraryScoreTieBreak`` gives Lucene's own scores; without it Anserini rounds them and takes ties apart."""
    options = {"index": index / INDEX, "topics": topics, "topicReader": "TsvString", "hits": bm25.depth}
    options |= {"bm25.k1": bm25.k1, "bm25.b": bm25.b, "threads": threads, "parallelism": 1}
    return ["-bm25", "-quiet", "-arbitraryScoreTieBreak", *_options(options)]


def _options(values: Mapping[str, object]) -> list[str]:
    return [part for name, value in values.items() for part in (f"-{name}", str(value))]


def _write_corpus(path: Path, documents: Iterable[tuple[str, str]]) -> int:
    """Write the documents by descending id: sorted block by block, and the blocks merged."""
    blocks: list[Path] = []
    documents = iter(documents)
    while block := _block(documents):
        blocks.append(path.with_name(f"{path.name}.{len(blocks)}.sorted"))
        with blocks[-1].open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(each) + "\n" for each in sorted(block, reverse=True))
    count = 0
    with ExitStack() as opened, path.open("w", encoding="utf-8") as file:
        rows = (map(json.loads, opened.enter_context(each.open(encoding="utf-8"))) for each in blocks)
        for name, text in heapq.merge(*rows, reverse=True):
            file.write(json.dumps({"id": checked_column(name, "document id"), "contents": text}) + "\n")
            count += 1
    for each in blocks:
        each.unlink()
    return count


def _block(documents: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    """The next documents, as many as are sorted in memory at once."""
    taken, size = [], 0
    for name, text in documents:
        taken.append((name, text))
        size += len(name) + len(text)
        if size >= SORTED:
            break
    return taken


@contextmanager
def _topics_file(topics: Mapping[str, str]) -> Iterator[Path]:
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
            file.writelines(f"{query}\t{text}\n" for query, text in topics.items())
            file.flush()
            yield Path(file.name)
    except OSError as error:
        raise EncoreError(f"cannot write a temporary file ({error}); make room or set TMPDIR, then repeat") from error


@contextmanager
def _longest_named(topics: Mapping[str, str]) -> Iterator[None]:
    """Lucene does not say which query has more terms than it takes."""
    try:
        yield
    except EncoreError as error:
        if "maxClauseCount" not in str(error):
            raise
        longest = max(topics, key=lambda query: len(set(topics[query].split())))
        raise EncoreError(f"{error}; the longest query is {longest}: shorten it in the collection") from error


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

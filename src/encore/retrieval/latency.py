"""What one query takes, one after another, as a user waits for it: ``latency.json``, and ``times.tsv`` of every query.

A system is known by the stage that makes its runs. Each measurer times its own parts, whose milliseconds add up, and
gives the size of its index; a system that combines others reads their measurements too.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from encore.config.languages import ANALYSED, ENGLISH
from encore.data.collection import Collection, topics
from encore.data.rankings import Ranking
from encore.data.runs import read_run
from encore.errors import EncoreError
from encore.storage import machine
from encore.storage.files import write_json, write_text

RECORD, TIMES = "latency.json", "times.tsv"
_FLAGS = ("-XX:+UseSerialGC", "--sun-misc-unsafe-memory-access=allow", "-Dslf4j.internal.verbosity=WARN")
Times = NDArray[np.float64]


@dataclass(frozen=True)
class Measurement:
    """The milliseconds of each part and in all [queries], the bytes of the indexes, and how many passages they hold."""

    parts: dict[str, Times]
    total: Times
    bytes: int
    passages: int
    threads: int = 1


class TimedRun(BaseModel):
    """What measurers read of the spec of a system's run; fields with a default are those of some stages only."""

    system: str
    split: str
    depth: int
    k1: float = 0.0
    b: float = 0.0
    query_length: int = 0
    reranked: int | None = None
    numerics: dict[str, Any] = {}
    search: dict[str, Any] | None = None  # how an index is searched; None for exact search


@dataclass(frozen=True)
class LatencyInputs:
    """What a measurement reads: folders by role, and of the systems that this one combines their measurements."""

    run: TimedRun
    queries: int
    warm_up: int
    folders: dict[str, list[Path]] = field(default_factory=dict)
    parts: list[Path] = field(default_factory=list)
    memory_mb: int = 1024

    def folder(self, role: str) -> Path:
        """The one folder of a role."""
        (folder,) = self.folders[role]
        return folder

    @cached_property
    def names(self) -> list[str]:
        """Ids of the queries that are timed: a sample of the split's, the same for every system."""
        return topics(Collection(self.folder("collection")), self.run.split, queries=self.queries, sample=0)

    def texts(self) -> list[str]:
        """Their texts."""
        written = Collection(self.folder("collection")).queries()
        return [written[name] for name in self.names]

    def timed(self, answer: Callable[[int], object]) -> Times:
        """Milliseconds of ``answer(number)`` for each query, after ``warm_up`` answers that are not timed.

        Those fill caches and let a virtual machine compile; they go through the queries from the first on, and around.
        """
        times = np.empty(len(self.names))
        for number in range(self.warm_up):
            answer(number % len(times))
        for number in range(len(times)):
            began = time.perf_counter_ns()
            answer(number)
            times[number] = (time.perf_counter_ns() - began) / 1e6
        return times


def measure_latency(kind: str, given: LatencyInputs, output: Path) -> dict[str, Any]:
    """Measure a system of a kind, write both files, and return the numbers of queries and passages and the bytes."""
    found = MEASURERS[kind](given)
    index = {"bytes": found.bytes, "passages": found.passages}
    record = {
        **given.run.model_dump(include={"system", "split", "depth"}),
        "queries": len(found.total),
        "stages": [{"stage": name, **summary(times)} for name, times in found.parts.items()],
        "total": summary(found.total),
        "index": index | {"bytes_per_passage": round(found.bytes / found.passages, 2)},
        "hardware": {
            "processor": machine.processor(),
            "threads": found.threads,
            "gpu": machine.gpu(),
            "load": round(os.getloadavg()[0], 2),
        },
    }
    columns = [*found.parts.values(), found.total]
    lines = [[name, *(f"{times[row]:.4f}" for times in columns)] for row, name in enumerate(given.names)]
    write_json(output / RECORD, record)
    write_text(output / TIMES, "".join("\t".join(line) + "\n" for line in [["query", *found.parts, "total"], *lines]))
    return {"queries": len(found.total), "passages": found.passages, "index_bytes": found.bytes}


def summary(times: Times) -> dict[str, float]:
    """Median, 90th percentile (linear between order statistics) and mean, in milliseconds."""
    median, high = np.percentile(times, [50, 90])
    values = {"median_ms": median, "p90_ms": high, "mean_ms": times.mean()}
    return {name: round(float(value), 4) for name, value in values.items()}


def lucene(given: LatencyInputs) -> Measurement:
    """BM25: a searcher that stays in memory, in a Java virtual machine that has compiled what it needs."""
    folder, texts, run = given.folder("index"), given.texts(), given.run
    language = Collection(given.folder("collection")).language
    with resident(folder, run.k1, run.b, given.memory_mb, language) as (searcher, java_list):

        def search(number: int) -> None:
            """Answer a query of plain words; the answer stays in Java, as bringing it here would take long."""
            queries, names = java_list(), java_list()
            queries.add(texts[number])
            names.add("query")
            searcher.batch_search(queries, names, run.depth, 1)

        times, passages = given.timed(search), int(searcher.get_total_num_docs())
    size = sum(path.stat().st_size for path in (folder / "lucene").rglob("*") if path.is_file())
    return Measurement({"search": times}, times, size, passages)


def dense(given: LatencyInputs) -> Measurement:
    """A model: the query encoder, then its search, of all passages exactly, shard by shard, or in an index.

    A query is tokenised in the first part, as it would be for a user.
    """
    import faiss

    from encore.data import vocabulary
    from encore.data.tokens import TokenStore
    from encore.models import embed
    from encore.retrieval import dense as retrieval
    from encore.retrieval import indexing
    from encore.storage.document_ids import DocIds
    from encore.training import machine as computing

    run, store = given.run, TokenStore(given.folder("tokens"))
    encoder = retrieval.opened(run.numerics, given.folder("model"), store)
    tokenizer = vocabulary.load_tokenizer(store.tokenizer_folder)
    folders = given.folders.get("index") or given.folders["indexes"]
    shards = retrieval.open_shards(folders, store.passages.names, encoder.dimension)
    if run.search is not None:
        (held,) = shards
        indexing.set_up(held.index, run.search)
    else:
        several: Any = faiss.IndexShards
        together = several(encoder.dimension, False, True)  # on one thread, rows counted through
        for shard in shards:
            together.add_shard(shard.index)
        held = retrieval.Shard(together, DocIds.joined([shard.documents for shard in shards]))
    texts, encoded = given.texts(), (encoder, store, given.names, run.query_length, run.numerics)
    queries = retrieval.embed_queries(*encoded)
    rows = [np.array([row]) for row in store.queries.names.rows(given.names)]

    def encode(number: int) -> None:
        tokenizer.encode(texts[number], add_special_tokens=False)
        embed.embed_texts(encoder.query_tower, store.queries, rows[number], run.query_length)

    with computing.precision(run.numerics, next(encoder.parameters()).device):
        encoding = given.timed(encode)
    searching = given.timed(lambda number: indexing.one(held, queries[number : number + 1], run.depth))
    size = sum((folder / "index").stat().st_size for folder in folders)
    parts = {"encoder": encoding, "search": searching}
    return Measurement(parts, encoding + searching, size, len(store.passages), run.numerics["threads"])


def fused(given: LatencyInputs) -> Measurement:
    """Two lists as one. The paper answers both at once, so the slower one counts; both indexes are kept."""
    from encore.retrieval.fusion import align, fuse

    (one, other), names = [read_run(given.folder(role)) for role in ("sparse", "dense")], given.names
    weight, depth = 1.0, given.run.depth  # whatever the weight, the sums are as many
    times = given.timed(lambda n: fuse(align(one.get(names[n]), other.get(names[n])), weight, depth))
    totals, size, passages = gathered(given.parts)
    return Measurement({"fusion": times}, np.max(totals, axis=0) + times, size, passages)


def reranked(given: LatencyInputs) -> Measurement:
    """A first stage, then a scorer over the best of its results, whose texts it reads for each query."""
    from encore.data.rankings import rank
    from encore.data.tokens import TokenStore
    from encore.finetuning.scoring import open_scorer
    from encore.retrieval.rerank import above
    from encore.training import machine as computing

    run, store, names = given.run, TokenStore(given.folder("tokens")), given.names
    device, first = computing.prepare(run.numerics), read_run(given.folder("first"))
    scorer = open_scorer(given.folder("model"), store).to(device)
    empty = Ranking([], np.empty(0, dtype=np.float32))
    queries = store.queries.names.find(names)
    passages = store.passages.names.find(
        document for name in names for document in first.get(name, empty).documents[: run.reranked]
    )

    def again(number: int) -> None:
        found = first.get(names[number], empty)
        best = found.documents[: run.reranked]
        rows = np.array([passages[document] for document in best], dtype=np.int64)
        scores = scorer.score(np.full(len(rows), queries[names[number]]), rows)
        above(rank(best, scores), found, run.depth)

    with computing.precision(run.numerics, device):
        times = given.timed(again)
    totals, size, passages_held = gathered(given.parts)
    return Measurement({"rerank": times}, totals[0] + times, size, passages_held, run.numerics["threads"])


def gathered(parts: Sequence[Path]) -> tuple[list[Times], int, int]:
    """What each of the systems that a system combines takes in all, the bytes of their indexes, and the passages."""
    lines = [(part / TIMES).read_text().splitlines()[1:] for part in parts]
    totals = [np.array([line.rpartition("\t")[2] for line in of_part], dtype=np.float64) for of_part in lines]
    if len({len(total) for total in totals}) > 1:
        raise EncoreError(f"{', '.join(map(str, parts))} timed different queries; measure them again")
    indexes = [json.loads((part / RECORD).read_text())["index"] for part in parts]
    return totals, sum(each["bytes"] for each in indexes), max(each["passages"] for each in indexes)


@contextmanager
def resident(index: Path, k1: float, b: float, memory_mb: int, language: str) -> Iterator[tuple[Any, Any]]:
    """A BM25 searcher over an index folder (the one that holds ``lucene``), open between queries, and Java's lists.

    Runs come from ``retrieval/lucene.py``, which starts Java once for many queries. Here Java is loaded into Python
    (pyjnius, which Pyserini brings), so that neither its start nor reading the index counts.
    """
    from encore.retrieval.lucene import INDEX

    if not (index / INDEX).is_dir():
        raise EncoreError(f"{index / INDEX} is missing; run the command that makes the index again")
    load = _java(memory_mb)
    searcher: Any = load("io.anserini.search.SimpleSearcher")(str(index / INDEX))
    searcher.set_bm25(k1, b)
    if language in ANALYSED:
        searcher.set_language(language)
    elif language != ENGLISH:  # as retrieval/lucene.py has it
        plain = load("io.anserini.analysis.DefaultEnglishAnalyzer").fromArguments("none", True, None)
        searcher.set_analyzer(plain)
    yield searcher, load("java.util.ArrayList")
    searcher.close()


def _java(memory_mb: int) -> Any:
    """Start Java in this process, unless it runs already, and give the function that loads a class."""
    from encore.retrieval import java

    home = java.java().parents[1]
    os.environ |= {"JAVA_HOME": str(home), "JVM_PATH": str(home / "lib" / "server" / "libjvm.so")}
    import jnius_config

    if not jnius_config.vm_running:
        jnius_config.set_classpath(str(java.jar()))
        jnius_config.add_options(f"-Xmx{memory_mb}m", *_FLAGS)
    from jnius import autoclass

    return autoclass


MEASURERS: dict[str, Callable[[LatencyInputs], Measurement]] = {
    "lucene_search": lucene,
    "search": dense,
    "search_index": dense,
    "fuse": fused,
    "rerank": reranked,
}

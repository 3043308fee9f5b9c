"""The stages of each kind of system: how one query is answered by what the run was made with.

A system is known by the stage that makes its runs. Each measurer gives its own stages and the size of its index; a
system that combines others has their measurements too.
"""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from encore.config.languages import ANALYSED, ENGLISH
from encore.data.collection import Collection, topics
from encore.data.rankings import Ranking
from encore.data.runs import read_run
from encore.errors import EncoreError
from encore.evaluation.latency.timing import Stage, measure

_FLAGS = ("-XX:+UseSerialGC", "--sun-misc-unsafe-memory-access=allow", "-Dslf4j.internal.verbosity=WARN")
TIMES = "times.tsv"
RECORD = "latency.json"


@dataclass(frozen=True)
class IndexSize:
    """An index on disk."""

    bytes: int
    passages: int


@dataclass(frozen=True)
class Measurement:
    """A system's stages, what a query takes in all, float64 [queries] milliseconds, and the size of its indexes."""

    stages: list[Stage]
    total: np.ndarray
    size: IndexSize
    threads: int


@dataclass(frozen=True)
class LatencyInputs:
    """What a measurement reads: folders by role, and of the systems that this one combines their measurements."""

    run: dict[str, Any]  # the spec of the system's run
    queries: int
    warm_up: int
    folders: dict[str, list[Path]] = field(default_factory=dict)
    parts: list[Path] = field(default_factory=list)
    memory_mb: int = 1024

    def folder(self, role: str) -> Path:
        """The one folder of a role."""
        (folder,) = self.folders[role]
        return folder

    def names(self) -> list[str]:
        """Ids of the queries that are timed: a sample of the split's, the same for every system."""
        return topics(Collection(self.folder("collection")), self.run["split"], queries=self.queries, sample=0)

    def texts(self) -> list[str]:
        """Their texts."""
        written = Collection(self.folder("collection")).queries()
        return [written[name] for name in self.names()]


def lucene(given: LatencyInputs) -> Measurement:
    """BM25: a searcher that stays in memory, in a Java virtual machine that has compiled what it needs."""
    folder, texts, run = given.folder("index"), given.texts(), given.run
    language = Collection(given.folder("collection")).language
    with Resident(folder, run["k1"], run["b"], given.memory_mb, language) as searcher:
        times = measure(lambda number: searcher.search(texts[number], run["depth"]), len(texts), given.warm_up)
        passages = searcher.documents()
    how = "Anserini's searcher on one thread of a warm Java process, called through JNI"
    size = sum(path.stat().st_size for path in (folder / "lucene").rglob("*") if path.is_file())
    return Measurement([Stage("search", how, times)], times, IndexSize(size, passages), 1)


def exact(given: LatencyInputs) -> Measurement:
    """A model's exact search: the query encoder, then the inner product with every passage, shard by shard."""
    import faiss

    from encore.retrieval import approximate
    from encore.retrieval.dense import Shard
    from encore.storage.document_ids import DocIds

    def prepared(shards: Sequence[Shard]) -> Callable[[np.ndarray, int], object]:
        several: Any = faiss.IndexShards
        together = several(shards[0].index.d, False, True)  # on one thread, rows counted through
        for shard in shards:
            together.add_shard(shard.index)
        whole = Shard(together, DocIds.joined([shard.documents for shard in shards]))
        return lambda query, depth: approximate.one(whole, query, depth)

    how = "FAISS, all passages exactly, and the merge of shards"
    return _dense(given, "indexes", prepared, how)


def indexed(given: LatencyInputs) -> Measurement:
    """A model's search in an index of a named type."""
    from encore.retrieval import approximate
    from encore.retrieval.dense import Shard

    def prepared(shards: Sequence[Shard]) -> Callable[[np.ndarray, int], object]:
        (held,) = shards
        approximate.set_up(held.index, given.run["search"])
        return lambda query, depth: approximate.one(held, query, depth)

    return _dense(given, "index", prepared, f"FAISS index, {json.dumps(given.run['search'])}")


def _dense(given: LatencyInputs, role: str, prepare: Any, how: str) -> Measurement:
    """Encoder and search, each timed by itself; a query is tokenised in the first, as it would be for a user."""
    from encore.data import vocabulary
    from encore.data.tokens import TokenStore
    from encore.models import embed
    from encore.retrieval.dense import embedded, open_shards, opened
    from encore.training import machine

    run, store, folders = given.run, TokenStore(given.folder("tokens")), given.folders[role]
    encoder, tokenizer = opened(run, given.folder("model"), store), vocabulary.load_tokenizer(store.tokenizer_folder)
    shards = open_shards(folders, store.passages.names, encoder.dimension)
    names, queries = embedded(
        {**run, "queries": given.queries, "sample": 0}, encoder, store, given.folder("collection")
    )
    rows, texts, best = [np.array([row]) for row in store.queries.names.rows(names)], given.texts(), prepare(shards)
    device = next(encoder.parameters()).device

    def encode(number: int) -> None:
        tokenizer.encode(texts[number], add_special_tokens=False)
        embed.embed_texts(encoder.query_tower, store.queries, rows[number], run["query_length"])

    with machine.precision(run["numerics"], device):
        encoding = measure(encode, len(names), given.warm_up)
    searching = measure(lambda n: best(queries[n : n + 1], run["depth"]), len(names), given.warm_up)
    description = (
        f"{sum(p.numel() for p in encoder.query_tower.parameters()):,} parameters on {device.type}, tokenizer included"
    )
    stages = [Stage("encoder", description, encoding), Stage("search", how, searching)]
    size = IndexSize(sum((folder / "index").stat().st_size for folder in folders), len(store.passages))
    return Measurement(stages, encoding + searching, size, run["numerics"]["threads"])


def fused(given: LatencyInputs) -> Measurement:
    """Two lists as one. The paper answers both at once, so the slower one counts; both indexes are kept."""
    from encore.retrieval.fusion import align, fuse

    sparse, dense = (read_run(given.folder(role)) for role in ("sparse", "dense"))
    weight, depth, names = 1.0, given.run["depth"], given.names()  # whatever the weight, the sums are as many
    times = measure(
        lambda n: fuse(align(sparse.get(names[n]), dense.get(names[n])), weight, depth), len(names), given.warm_up
    )
    stages, totals, size = gathered(given.parts)
    how = "both lists at once, the slower one counts, then their sum"
    return Measurement([*stages, Stage("fusion", how, times)], np.max(totals, axis=0) + times, size, 1)


def reranked(given: LatencyInputs) -> Measurement:
    """A first stage, then a scorer over the best of its results, whose texts it reads for each query."""
    from encore.data.rankings import rank
    from encore.data.tokens import TokenStore
    from encore.finetuning.scoring import open_scorer
    from encore.retrieval.rerank import above
    from encore.training import machine

    run, store, names = given.run, TokenStore(given.folder("tokens")), given.names()
    device, first = machine.prepare(run["numerics"]), read_run(given.folder("first"))
    scorer = open_scorer(given.folder("model"), store).to(device)
    empty = Ranking([], np.empty(0, dtype=np.float32))
    queries = store.queries.names.find(names)
    passages = store.passages.names.find(
        document for name in names for document in first.get(name, empty).documents[: run["reranked"]]
    )

    def again(number: int) -> None:
        found = first.get(names[number], empty)
        best = found.documents[: run["reranked"]]
        rows = np.array([passages[document] for document in best], dtype=np.int64)
        scores = scorer.score(np.full(len(rows), queries[names[number]]), rows)
        above(rank(best, scores), found, run["depth"])

    with machine.precision(run["numerics"], device):
        times = measure(again, len(names), given.warm_up)
    stages, totals, size = gathered(given.parts)
    how = f"{run['reranked']} results of the first stage, on {device.type}, their texts read anew"
    threads = run["numerics"]["threads"]
    return Measurement([*stages, Stage("rerank", how, times)], totals[0] + times, size, threads)


def gathered(parts: Sequence[Path]) -> tuple[list[Stage], list[np.ndarray], IndexSize]:
    """The stages of the systems that a system combines, what each takes in all, and the size of their indexes."""
    stages, totals, sizes = [], [], []
    for part in parts:
        record = json.loads((part / RECORD).read_text())
        lines = [line.split("\t") for line in (part / TIMES).read_text().splitlines()]
        columns = np.array([line[1:] for line in lines[1:]], dtype=np.float64).T
        for number, stage in enumerate(record["stages"]):
            stages.append(Stage(f"{record['system']}: {stage['stage']}", stage["how"], columns[number]))
        totals.append(columns[-1])
        sizes.append(IndexSize(record["index"]["bytes"], record["index"]["passages"]))
    if len({len(total) for total in totals}) > 1:
        raise EncoreError(f"{', '.join(map(str, parts))} timed different queries; measure them again")
    return stages, totals, IndexSize(sum(size.bytes for size in sizes), max(size.passages for size in sizes))


class Resident:
    """A BM25 searcher over an index folder (the one that holds ``lucene``), open between queries; one a process.

    Runs come from ``retrieval/lucene.py``, which starts Java once for many queries. Here Java is loaded into Python
    (pyjnius, which Pyserini brings), so that neither its start nor reading the index counts.
    """

    def __init__(self, index: Path, k1: float, b: float, memory_mb: int = 1024, language: str = ENGLISH) -> None:
        from encore.retrieval.lucene import INDEX

        if not (index / INDEX).is_dir():
            raise EncoreError(f"{index / INDEX} is missing; run the command that makes the index again")
        load = _java(memory_mb)
        self._list = load("java.util.ArrayList")
        self._searcher: Any = load("io.anserini.search.SimpleSearcher")(str(index / INDEX))
        self._searcher.set_bm25(k1, b)
        if language in ANALYSED:
            self._searcher.set_language(language)
        elif language != ENGLISH:  # as retrieval/lucene.py has it
            plain = load("io.anserini.analysis.DefaultEnglishAnalyzer").fromArguments("none", True, None)
            self._searcher.set_analyzer(plain)

    def search(self, text: str, depth: int) -> None:
        """Answer a query of plain words; the answer stays in Java, as bringing it here would take long."""
        queries, names = self._list(), self._list()
        queries.add(text)
        names.add("query")
        self._searcher.batch_search(queries, names, depth, 1)

    def documents(self) -> int:
        """How many documents the index holds."""
        return int(self._searcher.get_total_num_docs())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._searcher.close()


def _java(memory_mb: int) -> Any:
    """Start Java in this process, unless it runs already, and give the function that loads a class."""
    from encore.retrieval import java

    home = java.java().parents[1]
    os.environ |= {"JAVA_HOME": str(home), "JVM_PATH": str(home / "lib" / "server" / "libjvm.so")}
    try:
        import jnius_config
    except ImportError as error:
        raise EncoreError("pyjnius is missing, which pyserini brings; install the locked dependencies again") from error
    if not jnius_config.vm_running:
        jnius_config.set_classpath(str(java.jar()))
        jnius_config.add_options(f"-Xmx{memory_mb}m", *_FLAGS)
    from jnius import autoclass

    return autoclass


MEASURERS: dict[str, Callable[[LatencyInputs], Measurement]] = {
    "lucene_search": lucene,
    "search": exact,
    "search_index": indexed,
    "fuse": fused,
    "rerank": reranked,
}

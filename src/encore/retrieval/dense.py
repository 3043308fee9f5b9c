"""Exact search: the inner product of every query with every passage, whatever the number of shards.

Products are taken in tiles of fixed shape (``tiles.py``), shards hold whole tiles (``encode.BLOCK``), and queries go in
fixed batches, so on a CPU a score has the same bytes in every division of a collection. Arbitrary members of a tie are
found at the last rank; ``best`` takes more until the tie at ``depth`` is complete, then orders it by document id.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import faiss
import numpy as np
import torch
from numpy.typing import NDArray

from encore.data.collection import Collection, QuerySample, topics
from encore.data.rankings import RunMatrices
from encore.data.runs import describe, write_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models import embed
from encore.models.encoder import Encoder
from encore.retrieval.inner_products import BATCH, ExactSearch
from encore.storage.document_ids import DocIds
from encore.training import machine

SPARE = 32  # ranks below ``depth`` that are asked for at once, for ties
MOST = 64  # how many times ``depth`` a complete tie may be worth; a collapsed model ties everything
T = TypeVar("T")
CPU = torch.device("cpu")
USUAL = {"cpu": 50.0, "cuda": 10_000.0}  # GFLOP/s in fp32 of a thread with AVX2, or of a data centre's GPU
LONG = 10**11  # operations of a search whose rate is not that of its start
FIX = "encode the collection again with this model"


@dataclass(frozen=True)
class Queries:
    """Which queries are answered, and how."""

    asked: QuerySample
    depth: int  # passages that each one gets
    query_length: int  # tokens
    numerics: dict[str, Any]  # as ``machine.prepare`` reads them
    system: str  # the name of the run


def answer_exactly(
    given: Queries,
    model: Path,
    tokens: Path,
    collection: Path,
    indexes: Sequence[Path],
    output: Path,
    members: set[str] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Answer the queries of a split with a model, write the run, and return its counts, and how fast the search was.

    Args:
        indexes: the folders of all shards of the collection.
        members: the ids of all passages that are searched; without, all are.
    """
    store, depth = TokenStore(tokens), given.depth
    encoder = opened(given.numerics, model, store)
    shards = open_shards(indexes, store.passages.names, encoder.dimension)
    names, queries = embedded(given, encoder, store, collection)
    searcher = Searcher(shards, next(encoder.parameters()).device, members)
    run = searcher.search(names, queries, depth)
    write_answers(given, run, encoder.config.similarity, collection, output)
    print(f"{len(names)} queries answered from {searcher.passages} passages", flush=True)
    print(speed_line(searcher.speed(), searcher.operations), flush=True)
    return {"queries": len(names), "passages": searcher.passages}, searcher.speed()


def write_answers(given: Queries, run: RunMatrices, similarity: str, collection: Path, output: Path) -> None:
    """Write the run of an exact search with its header."""
    method = {"name": "exact search", "method": "dense", "similarity": similarity, "depth": given.depth}
    header = describe(given.system, collection=collection.name, split=given.asked.split, retrieval=[method])
    write_run(output, run, header)


def speed_line(speed: dict[str, Any], operations: int) -> str:
    """The speed of a search, and if it was long and ten times slower than usual, what to check."""
    threads = f", threads: {speed['threads']}" if "threads" in speed else ""
    line = f"exact search by {speed['way']}{threads}: {speed['gflops']} GFLOP/s"
    usual = speed.get("threads", 1) * USUAL[speed["way"].rpartition(" ")[2]]
    if operations < LONG or speed["gflops"] >= usual / 10:
        return line
    return (
        f"{line}, where {usual:.0f} are usual: check what else runs on this machine, how fast its vectors are "
        "read, and whether torch uses the processor's vector instructions (torch.__config__.show())"
    )


def faiss_speed(device: str, what: str, count: int, seconds: float) -> dict[str, Any]:
    """Speed of building or searching, for ``run.json``: ``way``, ``threads`` of a CPU, ``<what>_per_second``."""
    threads = {"threads": faiss.omp_get_max_threads()} if device == "cpu" else {}
    return {"way": f"FAISS on {device}", **threads, f"{what}_per_second": float(f"{count / max(seconds, 1e-9):.3g}")}


def opened(numerics: dict[str, Any], model: Path, store: TokenStore) -> Encoder:
    """A model ready to embed, on the device and the threads of ``numerics``; FAISS gets as many threads."""
    device = machine.prepare(numerics)
    faiss.omp_set_num_threads(numerics["threads"])
    return embed.load_for_tokens(model, store).to(device).eval()


def embedded(queries: Queries, encoder: Encoder, store: TokenStore, collection: Path) -> tuple[list[str], np.ndarray]:
    """The queries that are asked for: their ids, and their vectors, float32 [queries, dimension]."""
    names = topics(Collection(collection), *queries.asked)
    return names, embed_queries(encoder, store, names, queries.query_length, queries.numerics)


def embed_queries(
    encoder: Encoder, store: TokenStore, names: Sequence[str], length: int, numerics: dict[str, Any]
) -> np.ndarray:
    """The vectors of queries by their ids, float32 [queries, dimension], cut to ``length`` tokens."""
    with machine.precision(numerics, next(encoder.parameters()).device):
        rows = store.queries.names.rows(names)
        if (rows < 0).any():
            raise EncoreError(f"{store.folder} lacks the query {names[int(rows.argmin())]!r}; make the tokens again")
        return embed.embed_texts(encoder.query_tower, store.queries, rows, length)


@dataclass(frozen=True)
class Shard:
    """A part of a collection: its vectors, and the document of each."""

    index: faiss.Index
    documents: DocIds

    @property
    def vectors(self) -> NDArray[np.float32] | NDArray[np.float16]:
        """The vectors of an exact index [passages, dimension], a view of its memory or of its mapped file."""
        exact: Any = self.index
        if isinstance(exact, faiss.IndexScalarQuantizer):
            codes: NDArray[np.uint8] = faiss.rev_swig_ptr(exact.codes.data(), exact.ntotal * exact.code_size)
            return codes.view(np.float16).reshape(exact.ntotal, exact.d)
        found: NDArray[np.float32] = faiss.rev_swig_ptr(exact.get_xb(), exact.ntotal * exact.d)
        return found.reshape(exact.ntotal, exact.d)


def open_shard(folder: Path) -> Shard:
    """Open what ``encode.write_shard`` wrote."""
    try:
        index = faiss.read_index(str(folder / "index"), faiss.IO_FLAG_MMAP_IFC)
        documents = DocIds.open(folder / "docid")
    except (RuntimeError, OSError) as error:
        raise EncoreError(f"shard {folder} is not readable ({str(error).splitlines()[-1][:120]}); {FIX}") from error
    if index.ntotal != len(documents):
        raise EncoreError(f"shard {folder} has {index.ntotal} vectors for {len(documents)} documents; {FIX}")
    return Shard(index, documents)


def open_shards(folders: Sequence[Path], collection: Sequence[str], dimension: int) -> list[Shard]:
    """Open the shards that together hold a collection, and check that they do."""
    shards = [open_shard(folder) for folder in folders]
    for folder, shard in zip(folders, shards, strict=True):
        if shard.index.d != dimension:
            raise EncoreError(f"shard {folder} has {shard.index.d} dimensions, queries have {dimension}; {FIX}")
    documents, names = DocIds.joined([shard.documents for shard in shards]), DocIds.joined([collection])
    if len(documents) != len(names) or (documents != names and not _once_each(documents, names)):
        raise EncoreError(
            f"{len(shards)} shards hold {len(documents)} documents and not the {len(collection)} of the collection "
            "once each: a shard is missing, given twice, or of another collection; give all shards of this one"
        )
    return shards


def vectors_by_row(folders: Sequence[Path], store: TokenStore, dimension: int) -> NDArray[np.float32]:
    """The vectors of a whole collection in the order of its token store, [passages, dimension]; raises as above."""
    shards = open_shards(folders, store.passages.names, dimension)
    found, names, first = np.empty((len(store.passages), dimension), dtype=np.float32), store.passages.names, 0
    for shard in shards:
        usual = range(first, first + len(shard.documents))
        in_order = names.part(usual) == shard.documents
        found[slice(usual.start, usual.stop) if in_order else names.rows(shard.documents)] = shard.vectors
        first = usual.stop
    return found


def _once_each(documents: DocIds, names: DocIds) -> bool:
    """True if each of as many names is there."""
    rows = names.rows(documents)
    return bool((rows >= 0).all() and (np.bincount(rows, minlength=len(names)) == 1).all())


class Searcher:
    """Shards, with what is the same for every batch of queries, on the device that multiplies."""

    def __init__(self, shards: Sequence[Shard], device: torch.device = CPU, members: set[str] | None = None) -> None:
        """``members``: the ids of all documents that are searched; without, all are."""
        self.shards, self.device = shards, device  # vectors are views of the shards
        self.documents = DocIds.joined([shard.documents for shard in shards])
        self.kept = None if members is None else DocIds.of(members).rows(self.documents) >= 0
        self.passages = len(self.documents) if self.kept is None else int(self.kept.sum())
        self.ranking = ExactSearch([shard.vectors for shard in shards], device)
        self.operations, self.seconds = 0, 0.0

    def search(self, names: Sequence[str], vectors: np.ndarray, depth: int) -> RunMatrices:
        """The ``depth`` best documents of each query, by score, then by descending document id.

        Args:
            names: query ids.
            vectors: float32 [queries, dimension], in the order of ``names``.
        """
        if not names:
            return RunMatrices.of({})
        scores, rows = self.best(vectors, depth)
        return RunMatrices.chosen(names, self.documents, rows, scores)

    def speed(self) -> dict[str, Any]:
        """Speed, for ``run.json``: ``way``, ``threads`` of a CPU, and ``gflops`` (10^9 operations a second)."""
        threads = {"threads": torch.get_num_threads()} if self.device.type == "cpu" else {}
        rate = self.operations / max(self.seconds, 1e-9) / 1e9
        return {"way": f"torch on {self.device.type}", **threads, "gflops": float(f"{rate:.3g}")}

    def best(self, vectors: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and rows of ``documents``, [queries, depth] each, of queries float32 [queries, dimension]."""
        found = self.by_batch(vectors, depth, lambda scores, rows: ordered(scores, rows, depth, self.documents))
        best, rows = (np.concatenate(part) for part in zip(*found, strict=True))
        return best, rows

    def by_batch(self, vectors: np.ndarray, depth: int, keep: Callable[[np.ndarray, np.ndarray], T]) -> list[T]:
        """What is kept of the hits of each batch of queries.

        Batches of queries with a tie that is cut are searched again, whole, since rounding may depend on their number.

        Args:
            vectors: float32 [queries, dimension].
            keep: of the scores and rows of a batch's hits [queries, hits], best first, in any order where they tie.
        """
        started = time.monotonic()
        size, passages = BATCH[self.device.type], self.passages
        batches = np.split(vectors, range(size, len(vectors), size))
        found: dict[int, T] = {}
        pending = list(range(len(batches)))
        for wanted in widths(depth):
            if not pending:
                break
            queries = torch.from_numpy(np.concatenate([batches[number] for number in pending])).to(self.device)
            most, cut = min(wanted, passages), []
            hits = self.ranking.by_batch(queries, most, self.kept)
            for number, (scores, rows) in zip(pending, hits, strict=True):
                if most < passages and (scores[:, depth - 1] == scores[:, -1]).any():
                    cut.append(number)
                found[number] = keep(scores, rows)
            pending = cut
        self.operations += 2 * len(self.documents) * vectors.size
        self.seconds += time.monotonic() - started
        return [found[number] for number in range(len(batches))]


def widths(depth: int) -> list[int]:
    """How many hits of a query are asked for, one after the other, until the tie at ``depth`` is complete."""
    found = [depth + SPARE]
    while found[-1] <= MOST * depth:
        found.append(4 * found[-1])
    return found


def ordered(scores: np.ndarray, rows: np.ndarray, depth: int, documents: DocIds) -> tuple[np.ndarray, np.ndarray]:
    """The ``depth`` best of hits [queries, hits], best first; of equal scores by descending document id."""
    scores = scores + np.float32(0)  # -0.0 becomes 0.0
    same = np.pad(scores[:, 1:] == scores[:, :-1], ((0, 0), (1, 1)))  # as the hit before
    tied = np.nonzero(same[:, 1:] | same[:, :-1])
    ties = np.cumsum(~same[tied])  # the number of each one's tie
    own, where = np.unique(rows[tied], return_inverse=True)
    place = documents.of_rows(own).places()[where]
    rows[tied] = rows[tied][np.lexsort((-place, ties))]
    return scores[:, :depth].copy(), rows[:, :depth].copy()  # no view, which would keep all hits

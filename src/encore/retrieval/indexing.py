"""Indexes of named types, built from a collection's exact shards, searched, and compared with exact search.

An index has the same bytes for any number of shards: vectors are added in the collection's order and on one thread, and
FAISS draws from fixed seeds.

- A graph (HNSW) grows by pieces, so that its vectors are in memory once; the levels of each piece have a seed.
- K-means (IVF-PQ) learns from vectors that FAISS draws, of which alone there is a copy in memory.
- Codes and numbers of 16 bits are made one by one, some vectors at a time.

IVF-PQ is trained, filled and searched on a GPU where the installed FAISS computes on one (``faiss-gpu``). Graphs stay
on the processor, as FAISS has no kernels for them, and so do codes of other than 8 bits. Seeds are the same on both;
sums round differently on a GPU, as a model's do.

A search completes ties and orders them as exact search does. Each query is asked for by itself: how far it searches,
and so what it finds, must not depend on its neighbours in a batch.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from encore.config.systems import K_MEANS_SAMPLE, Hnsw, IndexType, IvfPq
from encore.data.rankings import Ranking, Run, rank
from encore.data.runs import describe, read_run, write_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.retrieval.dense import MOST, SPARE, Queries, Shard, embedded, faiss_speed, open_shard, open_shards, opened
from encore.retrieval.encode import division, write_index
from encore.storage import gpu_leases, machine
from encore.storage.document_ids import DocIds
from encore.storage.progress import Progress

PIECE = 2**15  # vectors that are added together
SEED = 12345  # of the levels of a graph's first piece: FAISS's own
CODES_SEED = 1234  # by which FAISS draws what codes learn from
TRAINING = 39  # vectors a centroid, below which FAISS itself warns of too few
GPU_RESULTS = 2048  # of a query on a GPU, at most
WHOLE_TABLES = 48  # parts of a vector whose tables fit in a block's memory as float32; more are kept as float16
FAISS_NAMES = {"ef_search": "efSearch", "nprobe": "nprobe"}
CUTS = (10, 100, 1000)  # of the exact answer


def make_index(fields: IndexType, shards: Sequence[Path], output: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gather a collection's shards into one index of a type and write it.

    Returns:
        Its counts, and how fast it was built.
    """
    parts = gather(shards)
    started = time.monotonic()
    index, device = build_index(fields, [part.vectors for part in parts])
    speed = faiss_speed(device, "vectors", index.ntotal, time.monotonic() - started)
    write_index(output, DocIds.joined([part.documents for part in parts]), index)
    size = (output / "index").stat().st_size
    print(f"{index.ntotal} vectors in an index of type {fields.kind}, {size / 2**20:.1f} MiB", flush=True)
    return {"passages": index.ntotal, "dimension": index.d, "bytes": size}, speed


def gather(folders: Sequence[Path]) -> list[Shard]:
    """Open all shards of a collection, in the collection's order."""
    return [open_shard(folder) for _, folder in division(folders)]


def build_index(fields: IndexType, parts: Sequence[np.ndarray]) -> tuple[faiss.Index, str]:
    """An index of a type over vectors by inner product, and the device that made it.

    Args:
        parts: float32 or float16 [passages, dimension] each.
    """
    count, dimension = sum(map(len, parts)), parts[0].shape[1]
    fields.check(dimension)
    faiss.omp_set_num_threads(1)
    match fields:
        case Hnsw():
            return _hnsw(fields, parts), "cpu"
        case IvfPq():
            return filled(_ivfpq(fields, count, dimension), parts)
        case _:
            return filled(_fp16(count, dimension), parts)


def _pieces(parts: Sequence[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """The vectors of all parts together, as float32 [at most ``size``, dimension]."""
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    for at in range(0, starts[-1], size):
        end = at + size
        cut = [part[max(at - start, 0) : max(end - start, 0)] for part, start in zip(parts, starts[:-1], strict=True)]
        yield np.concatenate(cut, dtype=np.float32)


def _hnsw(fields: Hnsw, parts: Sequence[np.ndarray]) -> faiss.Index:
    count, dimension = sum(map(len, parts)), parts[0].shape[1]
    held = count * (4 * dimension + 16 * fields.m)  # numbers, and links, of which there is a copy while they grow
    if held > machine.memory():
        raise EncoreError(
            f"index type hnsw: a graph of {count:,} vectors takes {held / 1e9:,.0f} GB of memory, and this machine has "
            f"{machine.memory() / 1e9:,.0f}; take @ivfpq, or a larger machine"
        )
    library: Any = faiss  # whose types say little of graphs
    index = library.IndexHNSWFlat(dimension, fields.m, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = fields.ef_construction
    vectors = library.downcast_index(index.storage)
    _reserve(vectors.codes, count * vectors.code_size)
    print(f"a graph of {count} vectors; a job that is killed starts it again", flush=True)
    progress = Progress("indexing", "vectors", count)
    for piece in _pieces(parts, PIECE):
        index.hnsw.rng = library.RandomGenerator(SEED + index.ntotal // PIECE)
        index.add(piece)
        progress.at(index.ntotal)
    return index


def _reserve(numbers: Any, size: int) -> None:
    """Reserve memory for all vectors: a vector of C++ that outgrows what it has is copied, and is there twice."""
    numbers.resize(size)
    numbers.resize(0)


def _ivfpq(fields: Any, count: int, dimension: int) -> faiss.Index:
    centroids = {"nlist": fields.nlist, "bits": 2**fields.bits}
    field, most = max(centroids.items(), key=lambda pair: pair[1])
    if count < TRAINING * most:
        raise EncoreError(
            f"index type ivfpq: {field}={getattr(fields, field)} has {most} centroids, for which k-means wants "
            f"{TRAINING * most} vectors, and the collection has {count}; lower {field} under `scale: indexes:`"
        )
    lists = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFPQ(lists, dimension, fields.nlist, fields.m, fields.bits, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = index.pq.cp.seed = fields.seed
    return index


def _fp16(count: int, dimension: int) -> faiss.Index:
    index = faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    _reserve(index.codes, count * index.code_size)
    return index


class OnGpu:
    """An index that its copy on a GPU answers for, up to ``GPU_RESULTS`` results of a query."""

    def __init__(self, index: faiss.Index, copy: faiss.Index) -> None:
        self.index, self.copy = index, copy

    def search(self, queries: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and rows [queries, wanted], as FAISS gives them."""
        answering: Any = self.copy if wanted <= GPU_RESULTS else self.index
        scores, rows = answering.search(queries, wanted)
        return scores, rows


def filled(index: Any, parts: Sequence[np.ndarray]) -> tuple[faiss.Index, str]:
    """An empty index, trained and filled with vectors [passages, dimension] each; and the device that did it.

    The index ends on the processor.
    """
    copy = _copied(index)
    there: Any = index if copy is None else copy
    if copy is not None:
        copy.train(_drawn(parts, max(index.nlist, 2**index.pq.nbits), index.cp.seed))
    elif isinstance(index, faiss.IndexIVFPQ):
        _train(index, parts)
    for piece in _pieces(parts, PIECE):
        there.add(piece)
    return (index, "cpu") if copy is None else (faiss.index_gpu_to_cpu(copy), "cuda")


def _train(index: Any, parts: Sequence[np.ndarray]) -> None:
    """Train IVF-PQ to the bytes of ``index.train`` with all vectors, from those alone that FAISS draws of them."""
    for_lists = _drawn(parts, index.nlist, index.cp.seed)
    index.train_q1(len(for_lists), faiss.swig_ptr(for_lists), False, index.metric_type)
    del for_lists
    for_codes = _drawn(parts, 2**index.pq.nbits, CODES_SEED)
    lists = index.quantizer.assign(for_codes, 1).ravel()
    centroids = index.quantizer.reconstruct_n(0, index.nlist)
    for first in range(0, len(lists), PIECE):
        for_codes[first : first + PIECE] -= centroids[lists[first : first + PIECE]]
    index.train_encoder(len(lists), faiss.swig_ptr(for_codes), faiss.swig_ptr(lists))
    index.is_trained = True


def _drawn(parts: Sequence[np.ndarray], centroids: int, seed: int) -> np.ndarray:
    """The vectors that FAISS's k-means learns so many centroids from, float32 [vectors, dimension], in its order."""
    starts = np.cumsum([0, *map(len, parts)])
    if (most := K_MEANS_SAMPLE * centroids) >= starts[-1]:
        return np.concatenate(parts, dtype=np.float32)
    rows = np.empty(starts[-1], np.int32)
    library: Any = faiss
    library.rand_perm(library.swig_ptr(rows), len(rows), seed)
    rows = rows[:most].copy()
    found, order = np.empty((most, parts[0].shape[1]), np.float32), np.argsort(rows)  # files are read forwards
    bounds = np.searchsorted(rows[order], starts)
    for part, start, first, last in zip(parts, starts, bounds, bounds[1:], strict=False):
        found[order[first:last]] = part[rows[order[first:last]] - start]
    return found


def searched(index: faiss.Index) -> Any:
    """The searcher of an index that is set up: the index itself, or ``OnGpu``."""
    copy = _copied(index)
    return index if copy is None else OnGpu(index, copy)


def _copied(index: faiss.Index) -> Any:
    """A copy of an IVF-PQ index on the first GPU; None for other types, without a GPU, and without kernels for it."""
    if not hasattr(faiss, "StandardGpuResources") or not isinstance(index, faiss.IndexIVFPQ):
        return None
    gpu_leases.lease()
    if not faiss.get_num_gpus():
        return None
    options = faiss.GpuClonerOptions()
    options.use_cuvs = False  # whose k-means has no seed
    options.useFloat16 = index.pq.M > WHOLE_TABLES
    try:
        copy: Any = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index, options)
    except RuntimeError as error:
        print(f"FAISS computes on the processor: {str(error).splitlines()[-1][:200]}", flush=True)
        return None
    copy.cp.seed = index.cp.seed  # which FAISS does not copy
    print("FAISS computes on a GPU", flush=True)
    return copy


def answer_from_index(
    given: Queries,
    how: dict[str, Any],
    model: Path,
    tokens: Path,
    collection: Path,
    index: Path,
    exact: Path,
    output: Path,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Answer the queries of a split from one index, write the run, and return counts and recall, and how fast it was.

    Args:
        how: the index is searched: ``ef_search`` or ``nprobe``.
        exact: the folder of the exact run over the same queries.
    """
    store, depth = TokenStore(tokens), given.depth
    encoder = opened(given.numerics, model, store)
    (held,) = open_shards([index], store.passages.names, encoder.dimension)
    names, queries = embedded(given, encoder, store, collection)
    searched, started = ready(held, how), time.monotonic()
    run = search_approximate(searched, names, queries, depth)
    device = "cuda" if isinstance(searched.index, OnGpu) else "cpu"
    speed = faiss_speed(device, "queries", len(names), time.monotonic() - started)
    method = {"name": "index", "method": type(held.index).__name__, "depth": depth, **how}
    header = describe(given.system, collection=collection.name, split=given.asked.split, retrieval=[method])
    write_run(output, run, header)
    found = recall(run, read_run(exact), depth)
    print(f"{len(names)} queries; of the exact answers: {found}", flush=True)
    return {"queries": len(names), "passages": len(held.documents), "recall": found}, speed


def ready(held: Shard, how: dict[str, Any]) -> Shard:
    """An index set up to be searched as ``how`` says, on a GPU where FAISS can."""
    set_up(held.index, how)
    return Shard(searched(held.index), held.documents)


def set_up(index: faiss.Index, how: dict[str, Any]) -> None:
    """Set how far an index searches: ``ef_search`` of a graph, ``nprobe`` of inverted lists."""
    for name, value in how.items():
        faiss.ParameterSpace().set_index_parameter(index, FAISS_NAMES[name], value)


def search_approximate(held: Shard, names: Sequence[str], queries: np.ndarray, depth: int) -> Run:
    """The best ``depth`` documents of each query that the index finds, by score, then by descending document id.

    Args:
        names: query ids.
        queries: float32 [queries, dimension], in the order of ``names``.
    """
    rows = np.ascontiguousarray(queries)
    return {name: one(held, rows[place : place + 1], depth) for place, name in enumerate(names)}


def one(held: Shard, query: np.ndarray, depth: int) -> Ranking:
    """The ranking that the index finds for one query, float32 [1, dimension]."""
    wanted = depth + SPARE
    while True:
        scores, rows = (found[0] for found in held.index.search(query, min(wanted, len(held.documents))))
        found = rows >= 0  # an index may find fewer than it is asked for
        ranking = rank(held.documents.take(rows[found]), scores[found], depth)
        # FAISS keeps any members of a tie at its last rank; if that tie reaches into the answer, ask further.
        cut = len(rows) == wanted and found.all() and scores[-1] == ranking.scores[-1]
        if not cut or wanted > MOST * depth:
            return ranking
        wanted *= 4


def recall(run: Run, exact: Run, depth: int) -> dict[str, float]:
    """Share of the exact answer's first documents that are among as many of the run's, in the mean over queries.

    By ``recall@<cut>``: at 10, 100 and 1,000, as far as the runs are that deep.
    """
    found = {}
    for cut in (cut for cut in CUTS if cut <= depth):
        shares = [
            len({*answered.documents[:cut]} & {*run[query].documents[:cut]}) / len(answered.documents[:cut])
            for query, answered in exact.items()
        ]
        found[f"recall@{cut}"] = round(float(np.mean(shares)), 6)
    return found

"""Indexes of named types, built from a collection's exact shards, with the same bytes for any number of shards.

Vectors are added in the collection's order and on one thread; FAISS draws from fixed seeds.

- A graph (HNSW) grows by pieces, so that its vectors are in memory once; the levels of each piece have a seed.
- K-means (IVF-PQ) depends on the order of sums, so it gets one copy of all vectors, on a GPU where FAISS has one.
- Numbers of 16 bits are rounded one by one, some vectors at a time.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from encore.config.systems import Hnsw, IndexType, IvfPq, read_index_type
from encore.errors import EncoreError
from encore.retrieval import lists_on_gpu
from encore.retrieval.dense import Shard, faiss_speed, open_shard
from encore.retrieval.encode import CollectionShard, write_index
from encore.storage.document_ids import DocIds
from encore.storage.progress import Progress

PIECE = 2**15  # vectors that are added together
SEED = 12345  # of the levels of a graph's first piece: FAISS's own
TRAINING = 39  # vectors a centroid, below which FAISS itself warns of too few


def make_index(spec: dict[str, Any], shards: Sequence[Path], output: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gather a collection's shards into one index of the type ``spec["index"]`` and write it.

    Returns:
        Its counts, and how fast it was built.
    """
    fields = read_index_type(spec["index"])
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
    parts = sorted(
        ((CollectionShard.parse(folder.name), folder) for folder in folders), key=lambda pair: pair[0].number
    )
    if [part.number for part, _ in parts] != list(range(parts[0][0].count)) or len({p.count for p, _ in parts}) > 1:
        raise EncoreError(
            f"{', '.join(folder.name for _, folder in parts)} are not the shards of one division; give all of one"
        )
    return [open_shard(folder) for _, folder in parts]


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
            return lists_on_gpu.filled(_ivfpq(fields, count, dimension), _pieces(parts, count))
        case _:
            return lists_on_gpu.filled(_fp16(count, dimension), _pieces(parts, PIECE))


def _pieces(parts: Sequence[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """The vectors of all parts together, as float32 [at most ``size``, dimension]."""
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    for at in range(0, starts[-1], size):
        end = at + size
        cut = [part[max(at - start, 0) : max(end - start, 0)] for part, start in zip(parts, starts[:-1], strict=True)]
        yield np.concatenate(cut, dtype=np.float32)


def _hnsw(fields: Hnsw, parts: Sequence[np.ndarray]) -> faiss.Index:
    count, dimension = sum(map(len, parts)), parts[0].shape[1]
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

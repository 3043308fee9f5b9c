"""Indexes of named types, built from a collection's exact shards, with the same bytes for any number of shards.

Vectors are added in the collection's order and on one thread. A graph grows by levels that are drawn for all that is
added at once, and k-means depends on the order of sums, so these types get all vectors together: one copy of them, next
to the index; numbers of 16 bits are rounded one by one, so that type gets the shards one after the other, which are
mapped. FAISS draws from fixed seeds. IVF-PQ is made on a GPU where FAISS has one.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from encore.config.index_types import Fp16, Hnsw, IndexType, IvfPq, read_index_type
from encore.errors import EncoreError
from encore.retrieval import lists_on_gpu
from encore.retrieval.dense import Shard, faiss_speed, open_shard
from encore.retrieval.encode import CollectionShard, write_index
from encore.storage.document_ids import DocIds

PIECE = 2**17  # vectors that are added together where a type allows it
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
    """Open all shards of a collection, in the collection's order.

    Raises:
        EncoreError: a shard is missing, there twice, of another division, or damaged.
    """
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

    Raises:
        EncoreError: the type cannot hold them, or they are too few for it.
    """
    dimension = parts[0].shape[1]
    fields.check(dimension)
    faiss.omp_set_num_threads(1)
    index = BUILDERS[type(fields)](fields, sum(map(len, parts)), dimension)
    return lists_on_gpu.filled(index, _in_pieces(parts) if isinstance(fields, Fp16) else [_together(parts)])


def _in_pieces(parts: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """The vectors as float32, some of them at a time."""
    for part in parts:
        for first in range(0, len(part), PIECE):
            yield part[first : first + PIECE].astype(np.float32, copy=False)


def _together(parts: Sequence[np.ndarray]) -> np.ndarray:
    """All vectors as float32; those of one shard that are stored so stay where they are mapped."""
    if len(parts) == 1 and parts[0].dtype == np.float32:
        return parts[0]
    vectors, first = np.empty((sum(map(len, parts)), parts[0].shape[1]), np.float32), 0
    for part in parts:
        vectors[first : first + len(part)] = part
        first += len(part)
    return vectors


def _hnsw(fields: Any, count: int, dimension: int) -> faiss.Index:
    index = faiss.IndexHNSWFlat(dimension, fields.m, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = fields.ef_construction
    return index


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


def _fp16(fields: Any, count: int, dimension: int) -> faiss.Index:
    index = faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    index.codes.resize(count * index.code_size)
    index.codes.resize(0)  # keeps the room: a vector that grows holds all twice
    return index


BUILDERS = {Hnsw: _hnsw, IvfPq: _ivfpq, Fp16: _fp16}

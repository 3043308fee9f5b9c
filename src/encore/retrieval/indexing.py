"""Indexes of named types, built from a collection's exact shards, with the same bytes for any number of shards.

All vectors are added at once, in the collection's order and on one thread: a graph depends on the order in which it
grows, and k-means on the order of sums. FAISS draws from fixed seeds. IVF-PQ is made on a GPU where FAISS has one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
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

TRAINING = 39  # vectors a centroid, below which FAISS itself warns of too few


def make_index(spec: dict[str, Any], shards: Sequence[Path], output: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gather a collection's shards into one index of the type ``spec["index"]`` and write it.

    Returns:
        Its counts, and how fast it was built.
    """
    fields = read_index_type(spec["index"])
    parts = gather(shards)
    vectors = np.concatenate([part.index.reconstruct_n(0, part.index.ntotal) for part in parts])
    started = time.monotonic()
    index, device = build_index(fields, vectors)
    speed = faiss_speed(device, "vectors", len(vectors), time.monotonic() - started)
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


def build_index(fields: IndexType, vectors: np.ndarray) -> tuple[faiss.Index, str]:
    """An index of a type over vectors, float32 [passages, dimension], by inner product, and the device that made it.

    Raises:
        EncoreError: the type cannot hold them, or they are too few for it.
    """
    fields.check(vectors.shape[1])
    faiss.omp_set_num_threads(1)
    return lists_on_gpu.filled(BUILDERS[type(fields)](fields, vectors), vectors)


def _hnsw(fields: Any, vectors: np.ndarray) -> faiss.Index:
    index = faiss.IndexHNSWFlat(vectors.shape[1], fields.m, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = fields.ef_construction
    return index


def _ivfpq(fields: Any, vectors: np.ndarray) -> faiss.Index:
    centroids = {"nlist": fields.nlist, "bits": 2**fields.bits}
    field, most = max(centroids.items(), key=lambda pair: pair[1])
    if len(vectors) < TRAINING * most:
        raise EncoreError(
            f"index type ivfpq: {field}={getattr(fields, field)} has {most} centroids, for which k-means wants "
            f"{TRAINING * most} vectors, and the collection has {len(vectors)}; lower {field} under `scale: indexes:`"
        )
    dimension = vectors.shape[1]
    lists = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFPQ(lists, dimension, fields.nlist, fields.m, fields.bits, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = index.pq.cp.seed = fields.seed
    return index


def _fp16(fields: Any, vectors: np.ndarray) -> faiss.Index:
    return faiss.IndexScalarQuantizer(vectors.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)


BUILDERS = {Hnsw: _hnsw, IvfPq: _ivfpq, Fp16: _fp16}

"""Indexes of named types, built from a collection's exact shards, with the same bytes for any number of shards.

Vectors are added in the collection's order and on one thread; FAISS draws from fixed seeds.

- A graph (HNSW) grows by pieces. FAISS draws the levels of all vectors that are added together, so each piece is drawn
  from another seed, and an interrupted job goes on after the last piece that it saved, to the same graph. What is
  saved are the links alone, since the shards hold the vectors.
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
from encore.storage import sealed
from encore.storage.document_ids import DocIds
from encore.storage.files import full_digest
from encore.storage.manifest import MANIFEST, describe
from encore.storage.progress import Progress

PIECE = 2**15  # vectors that are added together
SAVED = 600  # seconds between two savings of a graph
SEED = 12345  # of the levels of a graph's first piece: FAISS's own
TRAINING = 39  # vectors a centroid, below which FAISS itself warns of too few
graphs: Any = faiss  # whose types say little of graphs
NO_VECTORS = graphs.IO_FLAG_SKIP_STORAGE


def make_index(
    spec: dict[str, Any], shards: Sequence[Path], output: Path, state: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Gather a collection's shards into one index of the type ``spec["index"]`` and write it.

    Args:
        state: the folder of a graph that is not done, for the caller to remove.

    Returns:
        Its counts, and how fast it was built.
    """
    fields = read_index_type(spec["index"])
    parts = gather(shards)
    started = time.monotonic()
    made_from = {
        "spec": spec,
        "faiss": faiss.__version__,
        "inputs": [describe(folder / MANIFEST) for folder in sorted(shards)],
    }
    index, device, added = build_index(fields, [part.vectors for part in parts], state / full_digest(made_from))
    speed = faiss_speed(device, "vectors", added, time.monotonic() - started)
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


def build_index(fields: IndexType, parts: Sequence[np.ndarray], state: Path) -> tuple[faiss.Index, str, int]:
    """An index of a type over vectors by inner product, the device that made it, and how many vectors it added now.

    Args:
        parts: float32 or float16 [passages, dimension] each.
        state: the file of a graph that is not done; its name says what it is made from.
    """
    count, dimension = sum(map(len, parts)), parts[0].shape[1]
    fields.check(dimension)
    faiss.omp_set_num_threads(1)
    match fields:
        case Hnsw():
            return _grow(fields, parts, state)
        case IvfPq():
            return *lists_on_gpu.filled(_ivfpq(fields, count, dimension), _pieces(parts, count)), count
        case _:
            return *lists_on_gpu.filled(_fp16(count, dimension), _pieces(parts, PIECE)), count


def _pieces(parts: Sequence[np.ndarray], size: int, first: int = 0, last: int | None = None) -> Iterator[np.ndarray]:
    """The vectors from ``first`` up to ``last`` of all parts together, as float32 [at most ``size``, dimension]."""
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    last = starts[-1] if last is None else last
    for at in range(first, last, size):
        end = min(at + size, last)
        cut = [part[max(at - start, 0) : max(end - start, 0)] for part, start in zip(parts, starts[:-1], strict=True)]
        yield np.concatenate(cut, dtype=np.float32)


def _make_room(numbers: Any, size: int) -> None:
    """Reserve memory: a vector of C++ that outgrows what it has is copied, and for that moment takes twice as much."""
    filled = numbers.size()
    numbers.resize(max(size, filled))
    numbers.resize(filled)


def _grow(fields: Hnsw, parts: Sequence[np.ndarray], state: Path) -> tuple[faiss.Index, str, int]:
    count = sum(map(len, parts))
    index = _begun(fields, parts, state)
    already, saved = index.ntotal, time.monotonic()
    progress = Progress("indexing", "vectors", count, already)
    for piece in _pieces(parts, PIECE, already):
        index.hnsw.rng = graphs.RandomGenerator(SEED + index.ntotal // PIECE)
        index.add(piece)
        progress.at(index.ntotal)
        if time.monotonic() - saved > SAVED and index.ntotal < count:
            written = graphs.VectorIOWriter()
            _make_room(written.data, 4 * index.hnsw.neighbors.size() + 16 * count)
            graphs.write_index(index, written, NO_VECTORS)
            sealed.write(state, graphs.rev_swig_ptr(written.data.data(), written.data.size()).data)
            saved = time.monotonic()
    return index, "cpu", count - already


def _begun(fields: Hnsw, parts: Sequence[np.ndarray], state: Path) -> Any:
    """The graph that was saved, or an empty one, with its vectors and room for all."""
    count, dimension = sum(map(len, parts)), parts[0].shape[1]
    for killed in state.parent.glob(".*.tmp"):  # while it was written
        killed.unlink()
    if sealed.is_whole(state):
        index = graphs.deserialize_index(np.frombuffer(sealed.read(state), np.uint8), NO_VECTORS)
        print(f"resuming after {index.ntotal} vectors", flush=True)
    else:
        index = graphs.IndexHNSWFlat(dimension, fields.m, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = fields.ef_construction
    vectors = graphs.IndexFlatIP(dimension)
    _make_room(vectors.codes, count * vectors.code_size)
    _make_room(index.hnsw.neighbors, round(count * fields.m * (2 + 2 / (fields.m - 1))))  # more than levels need
    for piece in _pieces(parts, PIECE, last=index.ntotal):
        vectors.add(piece)
    index.storage, index.own_fields = vectors, True
    vectors.this.disown()
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


def _fp16(count: int, dimension: int) -> faiss.Index:
    index = faiss.IndexScalarQuantizer(dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT)
    _make_room(index.codes, count * index.code_size)
    return index

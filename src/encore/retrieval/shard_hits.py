"""Exact search shard by shard: the best passages of each shard in separate files, and the run that they make.

A hit is one number, of its score and its row in the collection (``ranking.packed``). Of each query a shard keeps the
``depth`` best passages and what ties with the last of them, as far as a search of all shards would look. The largest
hits of all shards are then the ones that it would have found, so the run has its bytes. Only of a tie that a GPU cuts,
of more than ``dense.MOST`` times ``depth`` passages, other members may be found.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from encore.data.collection import Collection, topics
from encore.data.rankings import RunMatrices
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models.checkpoint import load_config
from encore.retrieval.dense import (
    FIX,
    Queries,
    Searcher,
    embedded,
    open_shard,
    opened,
    ordered,
    speed_line,
    widths,
    write_answers,
)
from encore.retrieval.encode import CollectionShard, division
from encore.retrieval.ranking import filled_up, packed, unpacked
from encore.storage.document_ids import DocIds
from encore.storage.files import sha256, write_array
from encore.storage.manifest import read_results

HITS, COUNTS = "hits.npy", "counts.npy"  # uint64 [hits], query by query; int64 [queries], the hits of each
TOGETHER = 256  # queries whose hits are merged at once


def find_in_shard(
    given: Queries,
    model: Path,
    tokens: Path,
    collection: Path,
    shard: Path,
    output: Path,
    members: set[str] | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Search one shard of a collection for the queries of a split; as ``dense.answer_exactly``, but for the files.

    Args:
        shard: its folder, named as ``CollectionShard`` has it.
    """
    store = TokenStore(tokens)
    encoder = opened(given.numerics, model, store)
    part, rows = open_shard(shard), CollectionShard.parse(shard.name).rows(len(store.passages))
    if (len(part.documents), part.index.d) != (len(rows), encoder.dimension):
        raise EncoreError(
            f"shard {shard} has {len(part.documents)} vectors of {part.index.d} dimensions, not {len(rows)} of "
            f"{encoder.dimension}; {FIX}"
        )
    names, queries = embedded(given, encoder, store, collection)
    searcher = Searcher([part], next(encoder.parameters()).device, members)

    def kept(scores: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        taken = scores >= scores[:, min(given.depth, scores.shape[1]) - 1, None]
        return packed(scores[taken], found[taken] + rows.start), taken.sum(axis=1)

    batches = searcher.by_batch(queries, given.depth, kept) if names and searcher.passages else []
    none = np.zeros(0, np.uint64), np.zeros(0 if batches else len(names), np.int64)
    for name, parts in zip((HITS, COUNTS), zip(none, *batches, strict=True), strict=True):
        write_array(output / name, np.concatenate(parts))
    print(f"{len(names)} queries answered from {searcher.passages} passages of {shard.name}", flush=True)
    print(speed_line(searcher.speed(), searcher.operations), flush=True)
    documents = sha256(shard / "docid")
    return {"queries": len(names), "passages": searcher.passages, "documents": documents}, searcher.speed()


def merge_hits(
    given: Queries, model: Path, tokens: Path, collection: Path, parts: Sequence[Path], output: Path
) -> dict[str, Any]:
    """Write the run of the hits in all shards, which ``find_in_shard`` wrote, and return its counts."""
    documents, names = TokenStore(tokens).passages.names, topics(Collection(collection), *given.asked)
    passages = 0
    for shard, part in division(parts):
        found = read_results(str(part))
        own = documents.part(shard.rows(len(documents)))
        if hashlib.sha256(own.lines.data).hexdigest() != found["documents"]:
            raise EncoreError(f"{part} has other documents than this shard of {tokens}; {FIX}")
        passages += found["passages"]
    run = merged(parts, names, documents, min(given.depth, passages), widths(given.depth)[-1])
    write_answers(given, run, load_config(model).similarity, collection, output)
    print(f"{len(names)} queries answered from {passages} passages of {len(parts)} shards", flush=True)
    return {"queries": len(names), "passages": passages}


def merged(parts: Sequence[Path], names: Sequence[str], documents: DocIds, depth: int, most: int) -> RunMatrices:
    """The run of the hits in all shards: of the ``most`` largest, the ``depth`` best in the order of ``rank``."""
    if not names:
        return RunMatrices.of({})
    shards, best = [_Hits(part) for part in parts], []
    for first in range(0, len(names), TOGETHER):
        hits = np.hstack([shard.matrix(first, first + TOGETHER) for shard in shards])
        best.append(ordered(*unpacked(np.sort(hits, axis=1)[:, ::-1][:, :most]), depth, documents))
    scores, rows = (np.concatenate(each) for each in zip(*best, strict=True))
    del best
    return RunMatrices.chosen(names, documents, rows, scores)


class _Hits:
    """The hits in a shard, mapped."""

    def __init__(self, folder: Path) -> None:
        self.counts = np.load(folder / COUNTS)
        self.ends = np.cumsum(self.counts)
        self.hits = np.load(folder / HITS, mmap_mode="r" if self.counts.any() else None)

    def matrix(self, first: int, last: int) -> np.ndarray:
        """Those of some queries, uint64 [queries, hits], filled up with zeros."""
        counts, ends = self.counts[first:last], self.ends[first:last]
        return filled_up(self.hits[ends[0] - counts[0] : ends[-1]], counts)

"""Vectors of a collection in shards, each a FAISS index with its document ids, laid out as Pyserini reads them.

A collection is cut into blocks of 1,024 passages in file order; a shard is some consecutive whole blocks, and batches
never reach over a block. So the vectors are the same bytes for any number of shards.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from encore.data.tokens import Sequences, TokenStore
from encore.errors import EncoreError
from encore.models import embed
from encore.models.encoder import Encoder
from encore.storage.document_ids import DocIds
from encore.storage.files import canonical, replacing, write_bytes
from encore.storage.manifest import NAME, VECTORS, described
from encore.storage.progress import Progress
from encore.storage.sealed import SealedBlocks
from encore.training import machine

BLOCK = 1024  # passages; tiles of exact search have as many, so shards hold whole ones
STORED = {"fp32": "<f4", "fp16": "<f2"}


@dataclass(frozen=True)
class CollectionShard:
    """One of the shards of a collection, as in ``000-of-003``."""

    number: int
    count: int

    @classmethod
    def parse(cls, name: str) -> "CollectionShard":
        """Read ``<number>-of-<count>``, both of three digits or more, numbers from 0."""
        match = NAME.fullmatch(name)
        if match is None or int(match[1]) >= int(match[2]):
            raise EncoreError(f"shard {name!r} is not a name like 000-of-001, 000-of-003 or 002-of-003; use one")
        return cls(int(match[1]), int(match[2]))

    def rows(self, passages: int) -> range:
        """The rows of a collection of so many passages that are in this shard: whole blocks, as even as they can be."""
        blocks = -(-passages // BLOCK)
        first, last = (blocks * number // self.count for number in (self.number, self.number + 1))
        return range(first * BLOCK, min(last * BLOCK, passages))


def division(folders: Sequence[Path]) -> list[tuple[CollectionShard, Path]]:
    """Folders that are named after all shards of a collection, in the collection's order."""
    parts = sorted(
        ((CollectionShard.parse(folder.name), folder) for folder in folders), key=lambda pair: pair[0].number
    )
    if [part.number for part, _ in parts] != list(range(parts[0][0].count)) or len({p.count for p, _ in parts}) > 1:
        raise EncoreError(
            f"{', '.join(folder.name for _, folder in parts)} are not the shards of one division; give all of one"
        )
    return parts


def encode(
    encoder: Encoder, passages: Sequences, part: CollectionShard, length: int, first: int = 0
) -> Iterator[np.ndarray]:
    """Vectors of a shard block by block from block ``first`` on, float32 [at most ``BLOCK``, dimension].

    Prints the rate now and then.
    """
    rows = np.array(part.rows(len(passages)), dtype=np.int64)
    done = min(first * BLOCK, len(rows))
    progress = Progress("encoding", "passages", len(rows), done)
    blocks = (rows[start : start + BLOCK] for start in range(done, len(rows), BLOCK))
    for block in embed.embed_blocks(encoder, passages, blocks, length):
        progress.more(len(block))
        yield block


@dataclass(frozen=True)
class Encoding:
    """How passages are encoded."""

    length: int  # tokens of a passage
    numerics: dict[str, Any]  # as ``machine.prepare`` reads them
    vectors: str = "fp32"  # how they are stored: a key of ``STORED``


def make_shard(how: Encoding, model: Path, tokens: Path, name: str, output: Path, state: Path) -> dict[str, Any]:
    """Encode the shard ``name`` of a token store with a model, write it, and return its counts.

    Args:
        model, tokens: folders with manifests.
        state: the folder of the blocks that are encoded so far, for the caller to remove.
    """
    part, store, numerics = CollectionShard.parse(name), TokenStore(tokens), how.numerics
    device = machine.prepare(numerics)
    encoder = embed.load_for_tokens(model, store).to(device).eval()
    rows = part.rows(len(store.passages))
    documents = store.passages.names.part(rows)
    made_of = {"spec": asdict(how), "shard": name, "inputs": described(model, tokens)}
    written = SealedBlocks(state / VECTORS, canonical(made_of))
    first = max(written.count - 1, 0)  # the header is the first of what is sealed
    if first:
        print(f"resuming after {first} blocks of {BLOCK} passages", flush=True)
    with machine.precision(numerics, device):
        blocks = encode(encoder, store.passages, part, how.length, first)
        write_shard(output, documents, encoder.dimension, blocks, written, how.vectors)
    return {"shard": name, "passages": len(rows), "dimension": encoder.dimension}


def write_shard(
    folder: Path,
    documents: Sequence[str],
    dimension: int,
    blocks: Iterable[np.ndarray],
    written: SealedBlocks,
    precision: str = "fp32",
) -> None:
    """Write ``index`` (FAISS, exact inner product) and ``docid`` (one id a line, in the index's order).

    Vectors are written as they come, so that memory never holds more than a block of them.

    Args:
        blocks: float32 [any number, dimension], a vector for each of the documents in all; those still to be written.
        written: the header and the blocks before these, or nothing; its file becomes ``index``.
        precision: in which they are stored, ``fp32`` or ``fp16``.
    """
    kind = np.dtype(STORED[precision])
    largest = float(np.finfo(kind).max)
    if not written.count:
        written.append(_header(len(documents), dimension, precision))
    for block in blocks:
        if np.abs(block).max(initial=0) > largest:
            text = f"a vector has a number above {largest:g}, the largest of {precision}"
            raise EncoreError(f"{text}; set `numerics: vectors: fp32`")
        written.append(np.ascontiguousarray(block, dtype=kind).data)
    written.move(folder / VECTORS)
    write_bytes(folder / "docid", DocIds.joined([documents]).lines.tobytes())


def _header(vectors: int, dimension: int, precision: str) -> bytes:
    """The header of the file of an exact FAISS index: that of an empty one, with other counts."""
    quantizer = faiss.ScalarQuantizer.QT_fp16
    halves = faiss.IndexScalarQuantizer(dimension, quantizer, faiss.METRIC_INNER_PRODUCT)
    empty = faiss.serialize_index(halves if precision == "fp16" else faiss.IndexFlatIP(dimension)).tobytes()
    each = 2 if precision == "fp16" else 1  # FAISS counts bytes of halves, and numbers of fp32
    return empty[:8] + struct.pack("<q", vectors) + empty[16:-8] + struct.pack("<q", vectors * dimension * each)


def write_index(folder: Path, documents: Sequence[str], index: faiss.Index) -> None:
    """Write a FAISS index of any kind, and the document of each of its vectors."""
    with replacing(folder / "index") as temporary:
        faiss.write_index(index, str(temporary))
    write_bytes(folder / "docid", DocIds.joined([documents]).lines.tobytes())

"""Negatives from a file of triples, a query, a positive and a negative on each line: by their ids, or by their texts.

MS MARCO publishes both kinds, ``qidpidtriples.train.full.2`` and ``triples.train.small``. Ids hold no blanks, so a
first line with a blank in it tells a file of texts. Texts are known by a hash of 64 bits; characters that were read in
the wrong encoding are repaired first, since that file has them and the passages of ir_datasets have not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from encore.data.collection import Collection
from encore.errors import EncoreError
from encore.finetuning.negatives.mining import Negatives, Statistics, statistics
from encore.finetuning.negatives.request import NegativesRequest, refuse_foreign_file
from encore.finetuning.negatives.sampling import NegativeSampler
from encore.storage.document_ids import DocIds
from encore.storage.document_index import DocIdIndex
from encore.storage.mojibake import repaired
from encore.storage.tsv import TsvBlock, read_tsv

COLUMNS = ("query", "positive", "negative")


class Known(Protocol):
    """What gives the row of a query or of a document, by what a file says of it."""

    def of(self, values: pa.StringArray, /) -> np.ndarray:
        """int64 [n]; -1 for what is unknown."""
        ...


def from_triples(
    path: Path, wanted: NegativesRequest, collection: Collection, *, keep: int, seed: int
) -> tuple[Negatives, Statistics]:
    """Draw at most ``keep`` negatives for each query (``sampling.py``); a file has no ranks, so all are 0.

    What the file calls positive is not read: the collection's judgments say it.

    Raises:
        EncoreError: a line is no triple (with its number), or nothing in the file is of this collection.
    """
    queries, documents = list(wanted.judgments), DocIds.joined([wanted.documents])
    sampler = NegativeSampler(queries, documents, keep, seed)
    is_wanted = np.array([query in wanted.queries for query in queries], dtype=bool)
    pairs = _judged_pairs(wanted, queries, documents)
    lines = judged = unknown = 0
    found = read_tsv(path, COLUMNS)
    first = next(found, None)
    known = _known(first, collection, queries, documents)
    for block in chain([first] if first else [], found):
        owners, candidates = known[0].of(block.columns[0]), known[1].of(block.columns[2])
        inside = (owners >= 0) & (candidates >= 0)
        lines, unknown = lines + len(block), unknown + int((~inside).sum())
        owners, candidates = owners[inside], candidates[inside]
        right = _among(pairs, owners * len(documents) + candidates)
        judged += int(right.sum())
        free = ~right & is_wanted[owners]
        sampler.add(owners[free], candidates[free])
    refuse_foreign_file(path, lines, unknown)
    taken = {query: rows for query, rows in zip(queries, sampler.sampled(), strict=True) if query in wanted.queries}
    sampled = {query: dict.fromkeys(documents.take(taken[query]), 0) for query in sorted(taken)}
    return sampled, statistics(sampled, judged=judged, unknown=unknown)


class RowTexts:
    """The row of each text, by its hash; of equal texts the first."""

    def __init__(self, texts: Iterable[str]) -> None:
        hashes = _hashes(texts)
        self._hashes, self._rows = np.unique(hashes, return_index=True)

    def of(self, values: pa.StringArray, /) -> np.ndarray:
        """int64 [n]; -1 for a text that is unknown."""
        encoded = pc.dictionary_encode(values)
        hashes = _hashes(encoded.dictionary.to_pylist())
        places = np.searchsorted(self._hashes, hashes).clip(max=len(self._hashes) - 1)
        rows = np.where(self._hashes[places] == hashes, self._rows[places], -1)
        return np.asarray(rows[encoded.indices.to_numpy(zero_copy_only=False)])


def _hashes(texts: Iterable[str]) -> np.ndarray:
    digests = b"".join(hashlib.blake2b(repaired(text).encode(), digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8")


def _known(first: TsvBlock | None, collection: Collection, queries: list[str], documents: DocIds) -> list[Known]:
    """What knows a file's queries and documents: by their texts where its first line has blanks."""
    if first is None or not any(" " in column[0].as_py() for column in first.columns):
        return [DocIdIndex(queries), DocIdIndex(documents)]
    query_texts = collection.queries()
    return [RowTexts(query_texts[query] for query in queries), RowTexts(_texts_of(collection, documents))]


def _texts_of(collection: Collection, documents: DocIds) -> Iterable[str]:
    for name, row in zip(documents, collection.corpus(), strict=True):
        if row["_id"] != name:
            raise EncoreError(f"{collection.folder} has another order than its documents were read in; run it again")
        yield row["text"]


def _judged_pairs(wanted: NegativesRequest, queries: list[str], documents: DocIds) -> np.ndarray:
    """Judged pairs that are no negatives, int64: the query's row times the number of documents, plus the document's."""
    if not wanted.exclude_judged:
        return np.empty(0, dtype=np.int64)
    judged = [[(owner, name) for name in wanted.judgments[query]] for owner, query in enumerate(queries)]
    flat = [pair for pairs in judged for pair in pairs]
    rows = DocIdIndex(documents).of(pa.array([name for _, name in flat], type=pa.string()))
    owners = np.array([owner for owner, _ in flat], dtype=np.int64)
    return np.sort(owners[rows >= 0] * len(documents) + rows[rows >= 0])


def _among(pairs: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Which keys are among the ascending pairs."""
    if not len(pairs):
        return np.zeros(len(keys), dtype=bool)
    return np.asarray(pairs[np.searchsorted(pairs, keys).clip(max=len(pairs) - 1)] == keys)

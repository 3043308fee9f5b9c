"""Negatives from a file of triples, a query, a positive and a negative on each line: by their ids, or by their texts.

MS MARCO publishes both kinds, ``qidpidtriples.train.full.2`` and ``triples.train.small``. Ids hold no blanks, so a
first line with a blank in it tells a file of texts. Texts are known by a hash of 64 bits. Characters that
were written as UTF-8 and read as Latin-1 are repaired first: that file has them, and ir_datasets repairs them in the
passages that it gives.

What a file says of queries or documents that the collection does not have is counted and left out; a file that knows
none of them is refused.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as Several
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from encore.data.collection import Collection
from encore.errors import EncoreError
from encore.finetuning.negatives.mining import Negatives, Statistics, statistics
from encore.storage.document_ids import DocIds
from encore.storage.tsv import TsvBlock, read_tsv
from encore.training.randomness import mixed

COLUMNS = ("query", "positive", "negative")
WAITING = 2**24  # candidates that are collected before all but the drawn ones are dropped
_READ_WRONG = re.compile("[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
Rows = Callable[[pa.StringArray], np.ndarray]  # ids or texts of a file -> rows, int64 [n]; -1 for unknown ones


@dataclass(frozen=True)
class NegativesRequest:
    """The queries that negatives are for, and what is known next to them."""

    queries: AbstractSet[str]
    judgments: Mapping[str, Mapping[str, int]]  # of all training queries, those that are not wanted too
    documents: Several[str]  # ids, in the corpus' order where texts are looked for
    exclude_judged: bool = True
    excluded: Mapping[str, AbstractSet[str]] = field(default_factory=dict)  # no negatives either, by query

    def left_out(self, query: str) -> AbstractSet[str]:
        """Documents that are not negatives of a query: those that are judged, and those that are excluded."""
        excluded = self.excluded.get(query, frozenset[str]())
        return self.judgments[query].keys() | excluded if self.exclude_judged else excluded


def refuse_foreign_file(path: Path, lines: int, unknown: int) -> None:
    """Refuse a file all of whose lines are about queries and documents that the collection does not have."""
    if unknown == lines:
        raise EncoreError(f"{path}: nothing in it is about queries and documents of this collection; name its own file")


def from_triples(
    path: Path, wanted: NegativesRequest, collection: Collection, *, keep: int, seed: int
) -> tuple[Negatives, Statistics]:
    """Draw at most ``keep`` negatives for each query (``NegativeSampler``); a file has no ranks, so all are 0.

    The file's positives are not read: the collection's judgments count.
    """
    queries, documents = list(wanted.judgments), DocIds.joined([wanted.documents])
    sampler = NegativeSampler(queries, documents, keep, seed)
    is_wanted = np.array([query in wanted.queries for query in queries], dtype=bool)
    pairs = _pairs_left_out(wanted, queries, documents)
    lines = judged = unknown = 0
    fits = False
    found = read_tsv(path, COLUMNS)
    first = next(found, None)
    query_rows, document_rows = _rows_of(first, collection, queries, documents)
    for block in chain([first] if first else [], found):
        owners, candidates = query_rows(block.columns[0]), document_rows(block.columns[2])
        inside = (owners >= 0) & (candidates >= 0)
        lines, unknown = lines + len(block), unknown + int((~inside).sum())
        fits = fits or _have_a_positive(wanted, queries, documents, owners, document_rows(block.columns[1]))
        owners, candidates = owners[inside], candidates[inside]
        right = _among(pairs, owners * len(documents) + candidates)
        judged += int(right.sum())
        free = ~right & is_wanted[owners]
        sampler.add(owners[free], candidates[free])
    refuse_foreign_file(path, lines, unknown)
    if not fits:
        raise EncoreError(f"{path}: no positive in it is relevant for its query here; name this collection's own file")
    taken = {query: rows for query, rows in zip(queries, sampler.sampled(), strict=True) if query in wanted.queries}
    sampled = {query: dict.fromkeys(documents.take(taken[query]), 0) for query in sorted(taken)}
    return sampled, statistics(sampled, judged=judged, unknown=unknown)


class RowTexts:
    """The row of each text, by its hash; of equal texts the first."""

    def __init__(self, texts: Iterable[str]) -> None:
        hashes = _codes(map(repaired, texts))
        self._hashes, self._rows = np.unique(hashes, return_index=True)

    def of(self, values: pa.StringArray, /) -> np.ndarray:
        """int64 [n]; -1 for a text that is unknown."""
        encoded = pc.dictionary_encode(values)
        hashes = _codes(map(repaired, encoded.dictionary.to_pylist()))
        places = np.searchsorted(self._hashes, hashes).clip(max=len(self._hashes) - 1)
        rows = np.where(self._hashes[places] == hashes, self._rows[places], -1)
        return np.asarray(rows[encoded.indices.to_numpy(zero_copy_only=False)])


def _rows_of(
    first: TsvBlock | None, collection: Collection, queries: list[str], documents: DocIds
) -> tuple[Rows, Rows]:
    """Look-ups of a file's queries and documents: by their texts if its first line contains a blank, else by id."""
    if first is None or not any(" " in column[0].as_py() for column in first.columns):
        return DocIds.of(queries).rows_of, documents.rows_of
    texts = collection.queries()
    return RowTexts(texts[query] for query in queries).of, RowTexts(_texts_of(collection, documents)).of


def _texts_of(collection: Collection, documents: DocIds) -> Iterable[str]:
    for name, row in zip(documents, collection.corpus(), strict=True):
        if row["_id"] != name:
            raise EncoreError(f"{collection.folder} has another order than its documents were read in; run it again")
        yield row["text"]


def _pairs_left_out(wanted: NegativesRequest, queries: list[str], documents: DocIds) -> np.ndarray:
    """Pairs that are not negatives, int64: the query's row times the number of documents, plus the document's."""
    flat = [(owner, name) for owner, query in enumerate(queries) for name in wanted.left_out(query)]
    rows = documents.rows_of(pa.array([name for _, name in flat], type=pa.string()))
    owners = np.array([owner for owner, _ in flat], dtype=np.int64)
    return np.sort(owners[rows >= 0] * len(documents) + rows[rows >= 0])


def _have_a_positive(
    wanted: NegativesRequest, queries: list[str], documents: DocIds, owners: np.ndarray, positives: np.ndarray
) -> bool:
    """Whether a line has a document that is judged relevant: ids of another collection may be known by accident."""
    known = np.flatnonzero((owners >= 0) & (positives >= 0))
    pairs = ((wanted.judgments[queries[owners[line]]], documents[positives[line]]) for line in known)
    return any(grades.get(document, 0) > 0 for grades, document in pairs)


def _among(pairs: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """True for keys that are among the ascending pairs."""
    if not len(pairs):
        return np.zeros(len(keys), dtype=bool)
    return np.asarray(pairs[np.searchsorted(pairs, keys).clip(max=len(pairs) - 1)] == keys)


def repaired(text: str) -> str:
    """The text with each character that was read as two to four of Latin-1 restored."""
    return text if text.isascii() else _READ_WRONG.sub(_meant, text)


def _meant(found: re.Match[str]) -> str:
    try:
        return found.group().encode("latin-1").decode()
    except UnicodeDecodeError:
        return found.group()


class NegativeSampler:
    """Draws for each query the ``keep`` documents with the smallest hash of (seed, query, document), in bounded memory.

    So a query's draw depends neither on the order of the candidates nor on other queries, and one candidate more
    replaces one that was sampled instead of all.
    """

    def __init__(self, queries: Sequence[str], documents: Sequence[str], keep: int, seed: int):
        """``queries`` and ``documents`` are ids by row."""
        self._keep, self._count = keep, len(queries)
        self._salts = _codes(f"{seed}:{query}" for query in queries)
        self._codes = _codes(documents)
        self._bits = np.uint64(len(queries).bit_length())
        self._limits = np.full(len(queries), np.iinfo(np.uint64).max, dtype=np.uint64)
        self._keys = [np.empty(0, dtype=np.uint64)]
        self._documents = [np.empty(0, dtype=np.int32)]
        self._size = 0

    def add(self, queries: np.ndarray, documents: np.ndarray) -> None:
        """Candidates, as rows: int64 [n] each."""
        chance = mixed(self._salts[queries] ^ self._codes[documents]) >> self._bits
        keys = (queries.astype(np.uint64) << (np.uint64(64) - self._bits)) | chance
        low = keys < self._limits[queries]
        self._keys.append(keys[low])
        self._documents.append(documents[low].astype(np.int32))
        self._size += int(low.sum())
        if self._size > WAITING:
            self._forget()

    def sampled(self) -> list[np.ndarray]:
        """The rows of each query's documents, in the order of their hashes."""
        self._forget()
        starts = np.searchsorted(self._owners(), np.arange(1, self._count))
        return np.split(self._documents[0], starts)

    def _forget(self) -> None:
        """Keep each query's first candidates, once each; the last of them is the limit for later ones."""
        keys, first = np.unique(np.concatenate(self._keys), return_index=True)
        documents = np.concatenate(self._documents)[first]
        self._keys, self._documents = [keys], [documents]
        owners = self._owners()
        place = np.arange(len(keys)) - np.searchsorted(owners, owners)
        last = place == self._keep - 1
        self._limits[owners[last]] = keys[last]
        self._keys, self._documents = [keys[place < self._keep]], [documents[place < self._keep]]
        self._size = 0

    def _owners(self) -> np.ndarray:
        """The query of each kept candidate, int64, ascending."""
        return (self._keys[0] >> (np.uint64(64) - self._bits)).astype(np.int64)


def _codes(names: Iterable[str]) -> np.ndarray:
    """64 bits of the SHA-256 of each name, uint64."""
    digests = b"".join(hashlib.sha256(name.encode()).digest()[:8] for name in names)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)

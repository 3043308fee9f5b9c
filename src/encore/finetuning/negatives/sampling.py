"""Drawing some of many candidates that come in any order and any number of times, in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

WAITING = 2**24  # candidates that are collected before all but the drawn ones are forgotten
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # of splitmix64 (Steele et al. 2014)


class NegativeSampler:
    """For each query the ``keep`` documents whose hash of (seed, query, document) is smallest.

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
        mixed = _mixed(self._salts[queries] ^ self._codes[documents]) >> self._bits
        keys = (queries.astype(np.uint64) << (np.uint64(64) - self._bits)) | mixed
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
        """Keep each query's first, once each, and remember the last of them as the limit of what may come."""
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
        """The query of each candidate that is kept, int64, ascending."""
        return (self._keys[0] >> (np.uint64(64) - self._bits)).astype(np.int64)


def _codes(names: Iterable[str]) -> np.ndarray:
    """64 bits of the SHA-256 of each name, uint64."""
    digests = b"".join(hashlib.sha256(name.encode()).digest()[:8] for name in names)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _mixed(values: np.ndarray) -> np.ndarray:
    """Each value as one that looks random, and that no other value has."""
    first, second = _FACTORS
    values = (values ^ (values >> np.uint64(30))) * first
    values = (values ^ (values >> np.uint64(27))) * second
    return np.asarray(values ^ (values >> np.uint64(31)))

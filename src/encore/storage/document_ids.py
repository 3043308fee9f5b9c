"""Ids of a collection's documents or queries, for millions of them: by row (``DocIds``), or as a set (``Ids``).

``DocIds`` takes 20 bytes an id with its index, where a list takes 60: the ids are one a line in a file that is mapped.
The row of an id is found by a 64-bit hash, and the id of that row is compared, so equal hashes do no harm.

``Ids`` takes 8 bytes an id: 264 MB for 33 million passages. The last ``BLOCK`` ids are kept as they are, those before
them as 8 bytes of their BLAKE2 digest. So a repetition within a block is found at once, and one across blocks when all
keys are sorted at the end: as a suspicion, which is settled by reading the written rows again (``twice``), so no
document is refused because two digests are equal. Of n ids, an unknown one is taken for a known one with a chance of
n / 2^64, and of fewer than ``BLOCK`` ids never.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 2**18  # ids that are processed together
NEWLINE = 10
SPARSE = 16  # a table of rows by number has at most so many entries for each id
DIGITS = 18  # decimal digits that always fit into an int64


class DocIds(Sequence[str]):
    """Ids by row; no id contains a line break."""

    def __init__(self, lines: np.ndarray) -> None:
        """``lines``: uint8, UTF-8, each id followed by a line break."""
        self.lines = lines
        parts = range(0, len(lines), 2**24)
        ends = [np.flatnonzero(lines[part : part + 2**24] == NEWLINE) + part for part in parts]
        self._bounds = np.concatenate([[0], *(end + 1 for end in ends)]).astype(np.int64)

    @classmethod
    def open(cls, path: Path) -> DocIds:
        """The ids of a file."""
        if not path.stat().st_size:  # which cannot be mapped
            return cls(np.zeros(0, dtype=np.uint8))
        return cls(np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray))

    @classmethod
    def joined(cls, parts: Sequence[Iterable[str]]) -> DocIds:
        """The ids of several collections, concatenated; those of a single one are not copied."""
        made = [part if isinstance(part, DocIds) else cls.of(part) for part in parts]
        return made[0] if len(made) == 1 else cls(np.concatenate([_bytes([]), *(part.lines for part in made)]))

    @classmethod
    def of(cls, names: Iterable[str]) -> DocIds:
        """These ids, which are read once and not kept."""
        return cls(_bytes(names))

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        rows = range(len(self))[index]
        return self.take(np.arange(len(self))[index]) if isinstance(rows, range) else self.take(np.array([rows]))[0]

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), BLOCK):
            yield from self[first : first + BLOCK]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self.rows([name])[0] >= 0)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list):
            return list(self) == other
        return isinstance(other, DocIds) and np.array_equal(self.lines, other.lines)

    __hash__ = None  # type: ignore[assignment]

    def take(self, rows: np.ndarray) -> list[str]:
        """The ids of rows [n]."""
        found: list[str] = []
        for first in range(0, len(rows), BLOCK):
            lines, _ = self._cut(rows[first : first + BLOCK])
            found += lines.tobytes().decode().split("\n")[:-1]
        return found

    def of_rows(self, rows: np.ndarray) -> DocIds:
        """The ids of rows [n], in the order of the rows."""
        parts = [self._cut(rows[first : first + BLOCK])[0] for first in range(0, len(rows), BLOCK)]
        return DocIds(np.concatenate([_bytes([]), *parts]))

    def rows(self, names: Sequence[str]) -> np.ndarray:
        """The row of each id, int64 [n]; -1 for an id that is unknown."""
        found = np.full(len(names), -1, dtype=np.int64)
        for first in range(0, len(names), BLOCK):
            requested = names[first : first + BLOCK]
            plain = np.array([place for place, name in enumerate(requested) if "\n" not in name], dtype=np.int64)
            found[first + plain] = self._rows(DocIds(_bytes([requested[place] for place in plain])))
        return found

    def find(self, names: Iterable[str]) -> dict[str, int]:
        """The rows of those ids that are known."""
        requested = list(dict.fromkeys(names))
        return {name: row for name, row in zip(requested, self.rows(requested).tolist(), strict=True) if row >= 0}

    def places(self) -> np.ndarray:
        """The rank of each row's id among all ids in ascending order, int64 [n]."""
        import pyarrow.compute as pc

        ranks = pc.rank(self.texts(), "ascending", tiebreaker="first")  # of UTF-8's bytes as of characters
        return np.asarray(ranks.to_numpy(), dtype=np.int64) - 1

    def rows_of(self, ids: pa.StringArray) -> np.ndarray:
        """The row of each id, int64 [n]; -1 for an id that is unknown.

        If all ids are whole numbers, as in MS MARCO, they are looked up by number: no text is made of any of them.
        """
        import pyarrow as pa

        if self._table is not None:
            try:
                numbers = ids.cast(pa.int64()).to_numpy(zero_copy_only=False)
            except pa.ArrowInvalid:
                pass  # some are not numbers, so all are looked up as texts
            else:
                inside = (numbers >= 0) & (numbers < len(self._table))
                return np.where(inside, self._table[np.where(inside, numbers, 0)], -1)
        different = ids.dictionary_encode()
        rows = self.rows(different.dictionary.to_pylist())
        return np.asarray(rows[different.indices.to_numpy(zero_copy_only=False)])

    @cached_property
    def _table(self) -> np.ndarray | None:
        """The row of each number, int64, -1 for unknown ones; None if some id is not a plain number, or a large one."""
        import pyarrow as pa

        lengths, lines = np.diff(self._bounds) - 1, self.lines
        if not len(self) or lengths.min() == 0 or lengths.max() > DIGITS:
            return None
        if not bool(((lines == NEWLINE) | ((lines >= ord("0")) & (lines <= ord("9")))).all()):
            return None
        padded = (lines[self._bounds[:-1]] == ord("0")) & (lengths > 1)
        numbers = self.texts().cast(pa.int64()).to_numpy()
        if padded.any() or numbers.max() > SPARSE * len(self) + 2**20:
            return None
        table = np.full(int(numbers.max()) + 1, -1, dtype=np.int64)
        table[numbers] = np.arange(len(self))
        return table

    def texts(self) -> pa.LargeStringArray:
        """The ids as Arrow has them, without line breaks between them."""
        import pyarrow as pa

        lines = self.lines[self.lines != NEWLINE]
        bounds = self._bounds - np.arange(len(self._bounds))
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(bounds), pa.py_buffer(lines))

    def _rows(self, requested: DocIds) -> np.ndarray:
        """The row of each id: of the rows with its hash, the first whose id is equal."""
        known, order = self._index
        wanted, found = requested._hashes(), np.full(len(requested), -1, dtype=np.int64)
        place, open_ = np.searchsorted(known, wanted), np.arange(len(requested))
        while len(open_):
            inside = place[open_] < len(known)
            open_ = open_[inside]
            open_ = open_[known[place[open_]] == wanted[open_]]
            rows = order[place[open_]].astype(np.int64)
            same = self._same(rows, requested, open_)
            found[open_[same]] = rows[same]
            open_ = open_[~same]
            place[open_] += 1
        return found

    @cached_property
    def _index(self) -> tuple[np.ndarray, np.ndarray]:
        """All hashes in ascending order, and the row of each."""
        hashes = self._hashes()
        order = np.argsort(hashes, kind="stable").astype(np.uint32 if len(hashes) < 2**32 else np.int64)
        return hashes[order], order

    def _hashes(self) -> np.ndarray:
        """uint64 [n]: the sum of an id's bytes, each times a random number for its position in the id."""
        longest = int(np.diff(self._bounds).max(initial=1))
        drawn = np.random.default_rng(0).integers(1 << 64, size=longest, dtype=np.uint64) | np.uint64(1)
        found = np.empty(len(self), dtype=np.uint64)
        for first in range(0, len(self), BLOCK):
            bounds = self._bounds[first : first + BLOCK + 1]
            starts = bounds[:-1] - bounds[0]
            within = np.arange(bounds[-1] - bounds[0]) - np.repeat(starts, np.diff(bounds))
            weighed = self.lines[bounds[0] : bounds[-1]] * drawn[within]
            found[first : first + len(starts)] = np.add.reduceat(weighed, starts)
        return found

    def _same(self, rows: np.ndarray, other: DocIds, others: np.ndarray) -> np.ndarray:
        """True where the ids of these rows and of others' rows are equal, bool [n]."""
        same: np.ndarray = self._lengths(rows) == other._lengths(others)
        if same.any():
            own, starts = self._cut(rows[same])
            theirs, _ = other._cut(others[same])
            same[same] = ~np.logical_or.reduceat(own != theirs, starts)
        return same

    def _lengths(self, rows: np.ndarray) -> np.ndarray:
        """Bytes of each row's id and its line break, int64 [n]."""
        lengths: np.ndarray = self._bounds[rows + 1] - self._bounds[rows]
        return lengths

    def _cut(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lines of rows, concatenated, and the start of each."""
        lengths = self._lengths(rows)
        starts = np.cumsum(lengths) - lengths
        places = np.arange(int(lengths.sum())) + np.repeat(self._bounds[rows] - starts, lengths)
        return self.lines[places], starts


def _bytes(names: Iterable[str]) -> np.ndarray:
    lines, names = bytearray(), iter(names)
    while part := list(islice(names, BLOCK)):
        lines += "".join(f"{name}\n" for name in part).encode(errors="surrogatepass")  # such an id is merely unknown
    return np.frombuffer(lines, dtype=np.uint8)


class Ids(Container[str]):
    """A set of ids that are entered one by one; membership can be tested after ``close``."""

    def __init__(self) -> None:
        self._recent: set[str] = set()
        self._spilled = array("Q")
        self._keys: np.ndarray | None = None  # ascending

    def __len__(self) -> int:
        return len(self._recent) + len(self._spilled)

    def __contains__(self, name: object) -> bool:
        if name in self._recent or self._keys is None or not isinstance(name, str):
            return name in self._recent
        key = np.uint64(_keys([name])[0])  # with Python's number, NumPy would convert all keys to float64
        place = int(self._keys.searchsorted(key))
        return place < len(self._keys) and bool(self._keys[place] == key)

    def enter(self, name: str) -> bool:
        """Enter an id; False if it is a recent one."""
        if name in self._recent:
            return False
        self._recent.add(name)
        if len(self._recent) >= BLOCK:
            self._spill()
        return True

    def close(self) -> set[int]:
        """End the entering; returns the keys that occur more than once."""
        if not self._spilled:
            return set()
        self._spill()
        self._keys = np.frombuffer(self._spilled, dtype="<u8")
        self._keys.sort()
        return set(self._keys[1:][self._keys[1:] == self._keys[:-1]].tolist())

    def _spill(self) -> None:
        self._spilled.extend(_keys(self._recent))
        self._recent.clear()


def twice(ids: Iterable[str], suspects: set[int]) -> tuple[int, str] | None:
    """The first row, from 1, whose id an earlier row has, and that id; None if all ids with equal keys differ.

    Args:
        ids: of all rows, in order.
        suspects: returned by ``Ids.close``.
    """
    seen: set[str] = set()
    for row, name in enumerate(ids, 1):
        if _keys([name])[0] in suspects:
            if name in seen:
                return row, name
            seen.add(name)
    return None


def _keys(names: Iterable[str]) -> array[int]:
    keys = array("Q")
    keys.frombytes(b"".join(blake2b(name.encode(), digest_size=keys.itemsize).digest() for name in names))
    return keys

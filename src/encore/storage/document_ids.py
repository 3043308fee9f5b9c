"""Ids of a collection's documents or queries, for millions of them: by row (``DocIds``), or as a set (``Ids``).

The ids of ``DocIds`` are one a line in a file that is mapped; where each begins is held, in 4 or 8 bytes. Rows are
found by reading all ids once against a table of those that are asked for, so ask for many at once; no id is copied.

``Ids`` takes 8 bytes an id of its BLAKE2 digest: 264 MB for 33 million passages. When all are entered, equal digests
are suspected to be a repetition, which reading the written rows again decides (``twice``), so no document is refused
because two digests are equal. Of n ids, an unknown one is taken for a known one with a chance of n / 2^64.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 2**18  # ids that are processed together
PART, ASKED = 2**24, 2**20  # bytes, or ids, that are looked through at once, and ids that are looked for at once
NEWLINE = 10
SPARSE = 16  # a table of rows by number has at most so many entries for each id


class DocIds(Sequence[str]):
    """Ids by row; no id contains a line break."""

    def __init__(self, lines: np.ndarray) -> None:
        """``lines``: uint8, UTF-8, each id followed by a line break."""
        self.lines = lines
        parts = range(0, len(lines), PART)
        counts = [int(np.count_nonzero(lines[part : part + PART] == NEWLINE)) for part in parts]
        kind = np.int32 if len(lines) < 2**31 else np.int64  # as Arrow's two types have them
        self._bounds: np.ndarray = np.zeros(sum(counts) + 1, kind)
        for part, last, count in zip(parts, accumulate(counts), counts, strict=True):
            ends = np.flatnonzero(lines[part : part + PART] == NEWLINE)
            self._bounds[last - count + 1 : last + 1] = ends + (part + 1)

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
        return (
            made[0] if len(made) == 1 else cls(np.concatenate([np.zeros(0, np.uint8), *(part.lines for part in made)]))
        )

    @classmethod
    def of(cls, names: Iterable[str]) -> DocIds:
        """These ids, which are read once and not kept."""
        lines, names = bytearray(), iter(names)
        while part := list(islice(names, BLOCK)):
            lines += "".join(f"{name}\n" for name in part).encode()
        return cls(np.frombuffer(lines, dtype=np.uint8))

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        rows = range(len(self))[index]
        if isinstance(rows, range):
            return self.take(np.arange(rows.start, rows.stop, rows.step))
        return self.take(np.array([rows]))[0]

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
        return self.of_rows(rows).lines.tobytes().decode().split("\n")[:-1]

    def part(self, rows: range) -> DocIds:
        """The ids of rows that follow one another, a view."""
        return DocIds(self.lines[self._bounds[rows.start] : self._bounds[rows.stop]])

    def of_rows(self, rows: np.ndarray) -> DocIds:
        """The ids of rows [n], in the order of the rows."""
        _, bounds, lines = self._ended.take(rows).buffers()
        return DocIds(np.frombuffer(lines, np.uint8)[: np.frombuffer(bounds, self._bounds.dtype)[len(rows)]])

    def rows(self, names: Sequence[str]) -> np.ndarray:
        """The first row of each id, int64 [n]; -1 for an unknown one. All ids are read for each million of these."""
        import pyarrow as pa

        found, kind = np.empty(len(names), dtype=np.int64), self._ended.type
        for first in range(0, len(names), ASKED):
            if isinstance(names, DocIds):
                part = names.part(range(len(names))[first : first + ASKED])._ended.cast(kind)
            else:  # an id with half of a surrogate pair is merely unknown
                part = [f"{name}\n".encode(errors="surrogatepass") for name in names[first : first + ASKED]]
            found[first : first + ASKED] = self._rows(pa.array(part, kind))
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

        texts = self.texts()
        try:
            numbers = texts.cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid:
            return None
        largest = int(numbers.max(initial=0))
        if numbers.min(initial=0) < 0 or largest > SPARSE * len(self) + 2**20:
            return None
        if not pa.array(numbers).cast(texts.type).equals(texts):  # such as 007
            return None
        table = np.full(largest + 1, -1, dtype=np.int64)
        table[numbers] = np.arange(len(self))
        return table

    def texts(self) -> pa.LargeStringArray:
        """The ids as Arrow has them, without line breaks between them."""
        import pyarrow as pa

        lines = self.lines[self.lines != NEWLINE]
        bounds = self._bounds.astype(np.int64) - np.arange(len(self._bounds))
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(bounds), pa.py_buffer(lines))

    @property
    def _ended(self) -> pa.Array:
        """The ids with their line breaks, a view of ``lines``."""
        import pyarrow as pa

        kind = pa.binary() if self._bounds.dtype == np.int32 else pa.large_binary()
        return pa.Array.from_buffers(kind, len(self), [None, pa.py_buffer(self._bounds), pa.py_buffer(self.lines)])

    def _rows(self, asked: pa.Array) -> np.ndarray:
        """The row of each id with its line break, int64 [n]."""
        import pyarrow.compute as pc

        different = asked.dictionary_encode()
        found = np.full(len(different.dictionary), -1)
        for first in reversed(range(0, len(self), PART)):
            places = pc.index_in(self._ended.slice(first, PART), different.dictionary).fill_null(-1).to_numpy()
            known = np.flatnonzero(places >= 0)[::-1]
            found[places[known]] = known + first
        return np.asarray(found[different.indices.to_numpy()])


class Ids(Container[str]):
    """A set of ids that are entered one by one; membership can be tested after ``close``."""

    def __init__(self) -> None:
        self._entered = array("Q")
        self._keys = np.zeros(0, np.uint64)  # ascending

    def __len__(self) -> int:
        return len(self._entered)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        key = np.uint64(_key(name))  # with Python's number, NumPy would convert all keys to float64
        place = int(self._keys.searchsorted(key))
        return place < len(self._keys) and bool(self._keys[place] == key)

    def enter(self, name: str) -> None:
        """Enter an id."""
        self._entered.append(_key(name))

    def close(self) -> set[int]:
        """End the entering; returns the keys that occur more than once."""
        self._keys = np.frombuffer(self._entered, dtype=np.uint64)
        self._keys.sort()
        return set(self._keys[1:][self._keys[1:] == self._keys[:-1]].tolist())


def twice(ids: Iterable[str], suspects: set[int]) -> tuple[int, str] | None:
    """The first row, from 1, whose id an earlier row has, and that id; None if all ids with equal keys differ.

    Args:
        ids: of all rows, in order.
        suspects: returned by ``Ids.close``.
    """
    seen: set[str] = set()
    for row, name in enumerate(ids, 1):
        if _key(name) in suspects:
            if name in seen:
                return row, name
            seen.add(name)
    return None


def _key(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")

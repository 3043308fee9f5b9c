"""Ids of texts by row, one a line in a file that is mapped: 20 bytes an id with the index, where a list takes 60.

A row's id is cut out of the file; the row of an id is found by a 64-bit hash, and the id that stands there is compared,
so equal hashes do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 2**18  # ids that are looked at together
NEWLINE = 10


class DocIds(Sequence[str]):
    """Ids, of which none has a line's end in it."""

    def __init__(self, lines: np.ndarray) -> None:
        """``lines``: uint8, UTF-8, each id with a line's end behind it."""
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
        """The ids of several collections, one behind another; of one alone nothing is copied."""
        made = [part if isinstance(part, DocIds) else cls.of(part) for part in parts]
        return made[0] if len(made) == 1 else cls(np.concatenate([_bytes([]), *(part.lines for part in made)]))

    @classmethod
    def of(cls, names: Iterable[str]) -> DocIds:
        """These ids, which are gone through once and not held."""
        return cls(_bytes(names))

    @property
    def starts(self) -> np.ndarray:
        """Where each id begins in the lines, int64 [n]."""
        return self._bounds[:-1]

    @property
    def lengths(self) -> np.ndarray:
        """Bytes of each id, int64 [n]."""
        return np.diff(self._bounds) - 1

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

    def index(self, name: str, start: int = 0, stop: int | None = None) -> int:
        """The row of an id, as a list has it."""
        row = int(self.rows([name])[0])
        if not start <= row < (len(self) if stop is None else stop):
            raise ValueError(f"{name!r} is not there")
        return row

    def take(self, rows: np.ndarray) -> list[str]:
        """The ids of rows [n]."""
        found: list[str] = []
        for first in range(0, len(rows), BLOCK):
            lines, _ = self._cut(rows[first : first + BLOCK])
            found += lines.tobytes().decode().split("\n")[:-1]
        return found

    def of_rows(self, rows: np.ndarray) -> DocIds:
        """The ids of rows [n] alone, in the order of the rows."""
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
        """The place of each row's id among all ids in ascending order, int64 [n]."""
        import pyarrow.compute as pc

        places = np.empty(len(self), dtype=np.int64)
        places[pc.sort_indices(self.texts()).to_numpy()] = np.arange(len(self))  # of UTF-8's bytes as of characters
        return places

    def texts(self) -> pa.LargeStringArray:
        """The ids for Arrow, which wants no lines' ends between them."""
        import pyarrow as pa

        lines = self.lines[self.lines != NEWLINE]
        bounds = self._bounds - np.arange(len(self._bounds))
        return pa.LargeStringArray.from_buffers(len(self), pa.py_buffer(bounds), pa.py_buffer(lines))

    def _rows(self, requested: DocIds) -> np.ndarray:
        """The row of each id; of rows with its hash, the first whose id is the same."""
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
        """uint64 [n]: the sum of an id's bytes, each times a number that is drawn for its place in the id."""
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
        """Whether the ids of these rows and of another's are the same, bool [n]."""
        same: np.ndarray = self._lengths(rows) == other._lengths(others)
        if same.any():
            own, starts = self._cut(rows[same])
            theirs, _ = other._cut(others[same])
            same[same] = ~np.logical_or.reduceat(own != theirs, starts)
        return same

    def _lengths(self, rows: np.ndarray) -> np.ndarray:
        """Bytes of each row's id with its line's end, int64 [n]."""
        lengths: np.ndarray = self._bounds[rows + 1] - self._bounds[rows]
        return lengths

    def _cut(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The lines of rows, one behind another, and where each starts."""
        lengths = self._lengths(rows)
        starts = np.cumsum(lengths) - lengths
        places = np.arange(int(lengths.sum())) + np.repeat(self._bounds[rows] - starts, lengths)
        return self.lines[places], starts


def _bytes(names: Iterable[str]) -> np.ndarray:
    lines, names = bytearray(), iter(names)
    while part := list(islice(names, BLOCK)):
        lines += "".join(f"{name}\n" for name in part).encode(errors="surrogatepass")  # such an id is merely unknown
    return np.frombuffer(lines, dtype=np.uint8)

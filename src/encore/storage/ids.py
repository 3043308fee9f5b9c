"""The ids of a collection's documents or queries, at 8 bytes each: 33 million passages' take 264 MB and not 4 GB.

The last ``BLOCK`` ids are held as they are, those before them as 8 bytes of their BLAKE2 digest. So a repetition within
a block is known at once, and one across blocks when all keys are sorted at the end: as a suspicion, which is settled by
reading the written rows again (``twice``), so a document is never refused because two digests are equal. An id that is
no collection's is taken for one of n with a chance of n / 2^64, and of fewer than ``BLOCK`` ids never.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

BLOCK = 2**18
_KEY = "<u8"


class Ids(Container[str]):
    """Ids that are entered one by one and, once all are there (``close``), can be asked for."""

    def __init__(self) -> None:
        self._recent: set[str] = set()
        self._spilled = array("Q")
        self._keys: np.ndarray | None = None  # ascending

    def __len__(self) -> int:
        return len(self._recent) + len(self._spilled)

    def __contains__(self, name: object) -> bool:
        if name in self._recent or self._keys is None or not isinstance(name, str):
            return name in self._recent
        key = _keys([name])[0]
        place = int(self._keys.searchsorted(key))
        return place < len(self._keys) and bool(self._keys[place] == key)

    def enter(self, name: str) -> bool:
        """Enter an id; False, where it is among the last ones already."""
        if name in self._recent:
            return False
        self._recent.add(name)
        if len(self._recent) >= BLOCK:
            self._spill()
        return True

    def close(self) -> set[int]:
        """Make the ids ready to be asked for; returns the keys that occur more than once."""
        if not self._spilled:
            return set()
        import numpy as np  # planning imports collections, and needs no arrays

        self._spill()
        self._keys = np.frombuffer(self._spilled, dtype=_KEY)
        self._keys.sort()
        return set(self._keys[1:][self._keys[1:] == self._keys[:-1]].tolist())

    def _spill(self) -> None:
        self._spilled.extend(_keys(self._recent))
        self._recent.clear()


def twice(ids: Iterable[str], suspects: set[int]) -> tuple[int, str] | None:
    """The first row, from 1, whose id an earlier row has, and that id; None where equal keys are of different ids.

    Args:
        ids: of all rows, in order.
        suspects: what ``Ids.close`` returned.
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

"""Where texts stand in an array, by their ids: for millions of ids at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

SPARSE = 16  # times as many numbers as there are ids: then a table by number would be mostly empty


class Rows:
    """The row of each id; ids that are all whole numbers, as MS MARCO's, are found without making texts of them."""

    def __init__(self, names: Sequence[str]) -> None:
        """``names`` are the ids, by row; none stands twice."""
        self._names = names
        self._table = _table(names)
        self._rows: dict[str, int] | None = None

    def of(self, ids: pa.StringArray) -> np.ndarray:
        """The row of each id, int64 [n]; -1 for an id that is unknown."""
        if self._table is not None:
            try:
                numbers = ids.cast(pa.int64()).to_numpy(zero_copy_only=False)
            except pa.ArrowInvalid:
                pass  # not all are numbers, so they are looked up as texts
            else:
                inside = (numbers >= 0) & (numbers < len(self._table))
                return np.where(inside, self._table[np.where(inside, numbers, 0)], -1)
        if self._rows is None:
            self._rows = {name: row for row, name in enumerate(self._names)}
        known = self._rows
        return np.fromiter((known.get(name, -1) for name in ids.to_pylist()), dtype=np.int64, count=len(ids))


def _table(names: Sequence[str]) -> np.ndarray | None:
    """int64, the row of each number, -1 where there is none; None where ids are no such numbers."""
    if not names or not all(name.isascii() and name.isdigit() and (name[0] != "0" or name == "0") for name in names):
        return None
    largest = max(map(len, names))
    numbers = np.array(names, dtype=np.int64) if largest < 19 else None  # digits of an int64
    if numbers is None or numbers.max() > SPARSE * len(names) + 2**20:
        return None
    table = np.full(int(numbers.max()) + 1, -1, dtype=np.int64)
    table[numbers] = np.arange(len(names))
    return table

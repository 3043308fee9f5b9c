"""Where texts stand in an array, by their ids: for millions of ids at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from encore.storage.document_ids import NEWLINE, DocIds

SPARSE = 16  # times as many numbers as there are ids: then a table by number would be mostly empty
DIGITS = 18  # that an int64 holds, whichever they are


class DocIdIndex:
    """The row of each id; ids that are all whole numbers, as MS MARCO's, are found without making texts of them."""

    def __init__(self, names: Sequence[str]) -> None:
        """``names`` are the ids, by row; none stands twice."""
        self._names = DocIds.joined([names])
        self._table = _table(self._names)

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
        different = ids.dictionary_encode()
        rows = self._names.rows(different.dictionary.to_pylist())
        return np.asarray(rows[different.indices.to_numpy(zero_copy_only=False)])


def _table(names: DocIds) -> np.ndarray | None:
    """int64, the row of each number, -1 where there is none; None where ids are no such numbers."""
    lengths, lines = names.lengths, names.lines
    if not len(names) or lengths.min() == 0 or lengths.max() > DIGITS:
        return None
    if not bool(((lines == NEWLINE) | ((lines >= ord("0")) & (lines <= ord("9")))).all()):
        return None
    padded = (lines[names.starts] == ord("0")) & (lengths > 1)
    numbers = names.texts().cast(pa.int64()).to_numpy()
    if padded.any() or numbers.max() > SPARSE * len(names) + 2**20:
        return None
    table = np.full(int(numbers.max()) + 1, -1, dtype=np.int64)
    table[numbers] = np.arange(len(names))
    return table

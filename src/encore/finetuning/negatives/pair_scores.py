"""A cross-encoder's scores of MS MARCO's pairs, as sentence-transformers publishes them: a pickled dict of dicts.

Python's unpickler calls whatever a file names, and makes objects of 160 million numbers. This one makes nothing but
numbers, and of each query arrays as soon as it is read.
"""

import pickle
from collections.abc import Container, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from encore.errors import EncoreError, quoted
from encore.storage.text_files import opened

SCALARS = {"numpy.core.multiarray", "numpy._core.multiarray"}  # where NumPy of either age makes its own numbers


class PublishedScores:
    """Scores of the wanted queries' pairs."""

    def __init__(self, pairs: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
        """``pairs`` are each query's documents, int64 [n], ascending, and their scores, float32 [n]."""
        self._pairs = pairs

    @classmethod
    def read(cls, path: Path, queries: Container[str]) -> "PublishedScores":
        """Read a file ``scores[query][document] -> score``, plain or ``.gz``, and keep what is of the queries."""
        try:
            with opened(path) as file:
                reader = _Reader(file, queries)
                reader.load()
        except Exception as error:  # damaged pickles raise anything: lengths of 2**63, links of what is empty
            raise EncoreError(
                f"{path} does not hold a dictionary of scores alone ({quoted(str(error))}); do not use it, fetch it "
                "again"
            ) from error
        if not reader.found:
            raise EncoreError(f"{path} has no score of any training query; name the file of this collection")
        return cls(reader.found)

    def of(self, query: str, documents: Sequence[int | str]) -> list[tuple[str, float]]:
        """Each document with its score.

        Raises:
            KeyError: one has none.
        """
        ids = np.array([int(document) for document in documents], dtype=np.int64)
        known, scores = self._pairs.get(query, (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)))
        places = np.searchsorted(known, ids)
        found = places < len(known)
        found[found] = known[places[found]] == ids[found]
        if not found.all():
            raise KeyError(f"no score of query {query} and passage {ids[~found][0]}")
        return list(zip(map(str, ids.tolist()), scores[places].tolist(), strict=True))


class _Memo(dict[int, Any]):
    """The objects that a pickle may refer to again, numbered as they come; numbers and their parts are not kept."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0

    def __len__(self) -> int:
        return self._next

    def __setitem__(self, place: int, value: Any) -> None:
        self._next = max(self._next, place + 1)
        if not isinstance(value, bytes | tuple | np.generic):
            super().__setitem__(place, value)


_InPython: Any = pickle._Unpickler  # the one that is written in Python: only that can be held back between two items


class _Reader(_InPython):
    """Takes each query's dictionary as soon as it is in the outer one, and empties it."""

    dispatch = dict(_InPython.dispatch)

    def __init__(self, file: IO[bytes], queries: Container[str]) -> None:
        super().__init__(file)
        self.memo = _Memo()
        self.found: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._queries = queries

    def find_class(self, module: str, name: str) -> Any:
        """NumPy's numbers, and nothing else."""
        if (module in SCALARS and name == "scalar") or (module, name) == ("numpy", "dtype"):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")

    def load_setitems(self) -> None:
        """Set the items since the mark in the dictionary below it (opcode SETITEMS)."""
        items = self.pop_mark()
        self._set(items)

    def load_setitem(self) -> None:
        """Set one item in the dictionary below it (opcode SETITEM)."""
        value, key = self.stack.pop(), self.stack.pop()
        self._set([key, value])

    def _set(self, items: list[Any]) -> None:
        target = self.stack[-1]
        for key, value in zip(items[::2], items[1::2], strict=True):
            if isinstance(value, dict):
                self._take(str(int(key)), value)
                value.clear()
            else:
                target[key] = float(value)

    def _take(self, query: str, scores: dict[Any, float]) -> None:
        if query in self._queries:
            documents = np.fromiter(map(int, scores), dtype=np.int64, count=len(scores))
            order = np.argsort(documents)
            self.found[query] = (
                documents[order],
                np.fromiter(scores.values(), dtype=np.float32, count=len(scores))[order],
            )

    dispatch[pickle.SETITEMS[0]] = load_setitems
    dispatch[pickle.SETITEM[0]] = load_setitem

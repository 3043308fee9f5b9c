"""The outputs of teachers, computed once: scores of pairs, or vectors of texts that any pair is scored from.

Files of a folder with scores: ``pair_queries.npy`` and ``pair_passages.npy`` (rows of the token store, ascending),
``pair_scores.npy`` (float32); published ones also have ``triples.npy`` (int32 [N, 3]: query, positive, negative).

Files of a folder with vectors, for each of ``queries`` and ``passages``: ``<name>.rows.npy``, ``<name>.offsets.npy``
and ``<name>.vectors.bin``, flat and memory-mapped; and ``vectors.json`` with their dimension and type. A teacher with
one vector a text is kept in float32. One with a vector a token takes a hundred times as much, and is kept in float16:
its passages' vectors have length 1, so what rounding does to a score is below a thousandth of it.
"""

import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import numpy as np

from encore.errors import EncoreError
from encore.storage.files import replacing, write_array, write_json

TYPES = {"text": "<f4", "token": "<f2"}  # of vectors, by what each represents
DESCRIPTION, SCORES, TRIPLES = "vectors.json", "pair_scores.npy", "triples.npy"


class PairScores:
    """A teacher's scores of pairs."""

    def __init__(self, folder: Path, passages: int) -> None:
        """Open the scores of a folder; ``passages`` is how many the token store has."""
        self.folder, self._count = folder, passages
        queries, documents = (_array(folder / f"pair_{name}.npy").astype(np.int64) for name in ("queries", "passages"))
        self._keys = queries * passages + documents
        self._scores = _array(folder / SCORES)

    def of(self, queries: np.ndarray, passages: np.ndarray) -> np.ndarray:
        """Scores of the passages [B, P] of each of the queries [B], float32 [B, P]."""
        wanted = queries[:, None] * self._count + passages
        places, known = self._found(wanted)
        if not known.all():
            query, passage = divmod(int(wanted[~known][0]), self._count)
            raise EncoreError(
                f"{self.folder} has no score of query {query} and passage {passage} (rows of the token store); "
                "it was made for other negatives, make it again"
            )
        found: np.ndarray = self._scores[places]
        return found

    def has(self, query: int, passages: np.ndarray) -> np.ndarray:
        """Which of the passages [n] of a query were scored, bool [n]."""
        return self._found(query * self._count + passages)[1]

    def _found(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where pairs are among the scores, and whether they are there, both of the shape of ``wanted``."""
        places = np.searchsorted(self._keys, wanted).clip(max=max(len(self._keys) - 1, 0))
        return places, self._keys[places] == wanted if len(self._keys) else np.zeros(wanted.shape, dtype=bool)

    @cached_property
    def triples(self) -> np.ndarray:
        """int32 [N, 3]: the query, its positive and its negative, of each line of the published file."""
        return _array(self.folder / TRIPLES)


def has_vectors_alone(folder: Path) -> bool:
    """True if a folder holds vectors and no scores."""
    return (folder / DESCRIPTION).is_file() and not (folder / SCORES).is_file()


def write_scores(folder: Path, queries: np.ndarray, passages: np.ndarray, scores: np.ndarray) -> None:
    """Write the scores of different pairs, in any order."""
    order = np.lexsort((passages, queries))
    for name, array in (("queries", queries.astype(np.int32)), ("passages", passages.astype(np.int32))):
        write_array(folder / f"pair_{name}.npy", array[order])
    write_array(folder / SCORES, scores.astype(np.float32)[order])


class TextVectors:
    """A teacher's vectors of some texts, one or several for each; opened, not read."""

    def __init__(self, folder: Path, name: str) -> None:
        """Open the vectors ``name``, which is ``queries`` or ``passages``."""
        self.folder, self.name = folder, name
        self.rows, self.offsets = (_array(folder / f"{name}.{part}.npy") for part in ("rows", "offsets"))
        described = _description(folder)
        self.dimension, kind = int(described["dimension"]), np.dtype(described["type"])
        path, shape = folder / f"{name}.vectors.bin", (int(self.offsets[-1]), self.dimension)
        if not path.is_file() or path.stat().st_size != shape[0] * shape[1] * kind.itemsize:
            raise EncoreError(f"{path} does not hold the {shape[0]} vectors of its offsets; make it again")
        # A plain view of the mapping: slicing a memmap object costs twice as much as the slice itself.
        self.vectors: np.ndarray = np.memmap(path, dtype=kind, mode="r", shape=shape).view(np.ndarray)
        self.longest = int(np.diff(self.offsets).max())

    def padded(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Vectors of the texts ``rows`` [*], padded to the longest text: [*, longest, D], and bool [*, longest]."""
        flat = rows.ravel()
        places = np.searchsorted(self.rows, flat).clip(max=len(self.rows) - 1)
        if (self.rows[places] != flat).any():
            row = int(flat[self.rows[places] != flat][0])
            raise EncoreError(
                f"{self.folder} has no vector of row {row} of the {self.name}; it was made for other negatives, "
                "make it again"
            )
        found = np.zeros((len(flat), self.longest, self.dimension), dtype=self.vectors.dtype)
        real = np.zeros((len(flat), self.longest), dtype=bool)
        for number, place in enumerate(places.tolist()):
            own = self.vectors[self.offsets[place] : self.offsets[place + 1]]
            found[number, : len(own)], real[number, : len(own)] = own, True
        return found.reshape(*rows.shape, *found.shape[1:]), real.reshape(*rows.shape, self.longest)


def write_vectors(folder: Path, name: str, rows: np.ndarray, texts: Iterable[np.ndarray], kind: str) -> int:
    """Write the vectors [n, D] of each text, in the order of the ascending ``rows``; returns how many they are.

    Args:
        kind: what a vector represents, a ``text`` or a ``token``.
    """
    offsets, dimension = [0], 0
    with replacing(folder / f"{name}.vectors.bin") as temporary, temporary.open("wb") as file:
        for vectors in texts:
            narrow = vectors.astype(TYPES[kind])
            if not np.isfinite(narrow).all():
                raise EncoreError("the teacher gives vectors that are not finite; its training diverged")
            file.write(narrow.tobytes())
            offsets.append(offsets[-1] + len(narrow))
            dimension = narrow.shape[1]
    write_array(folder / f"{name}.rows.npy", rows)
    write_array(folder / f"{name}.offsets.npy", np.array(offsets, dtype=np.int64))
    write_json(folder / DESCRIPTION, {"dimension": dimension, "type": TYPES[kind]})
    return offsets[-1]


def _description(folder: Path) -> dict[str, str]:
    try:
        described: dict[str, str] = json.loads((folder / DESCRIPTION).read_text())
    except (OSError, ValueError) as error:
        raise EncoreError(f"{folder / DESCRIPTION} is missing or damaged ({error}); make it again") from error
    return described


def _array(path: Path) -> np.ndarray:
    if not path.is_file():
        raise EncoreError(f"{path} is missing: the teacher's outputs are incomplete; make them again")
    array: np.ndarray = np.load(path, mmap_mode="r")
    return array

"""Rankings and runs in memory: a run is two matrices, rows of documents and scores, and one rule for ties.

The documents of a run are numbered by ascending id, so the rule for ties (descending id, as in trec_eval) is an order
of whole numbers, and no id is made a string before somebody asks for it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

from encore.errors import EncoreError
from encore.storage.document_ids import DocIds

NOT_FINITE = "is not a finite number; the model that gave it has diverged"
REPEATED = "a document occurs twice in one ranking; remove the duplicate from the index or the run"


@dataclass(frozen=True)
class Ranking:
    """One query's answer: document ids and float32 scores of equal length, best first."""

    documents: list[str]
    scores: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.documents)


Run = Mapping[str, Ranking]  # by query id; queries without an answer are absent


def rank(documents: Sequence[str], scores: ArrayLike, depth: int | None = None) -> Ranking:
    """Order documents by descending float32 score, equal scores by descending document id as trec_eval does, and cut.

    Ids compare by code point, which is the order of their UTF-8 bytes.
    """
    rounded = _float32(scores)
    if not np.isfinite(rounded).all():
        where = documents[int(np.flatnonzero(~np.isfinite(rounded))[0])]
        raise EncoreError(f"the score of document {where} {NOT_FINITE}")
    if len(set(documents)) < len(documents):
        raise EncoreError(REPEATED)
    pairs = sorted(zip(rounded.tolist(), documents, strict=True), reverse=True)[:depth]
    values = np.array([score for score, _ in pairs], dtype=np.float32)
    return Ranking([document for _, document in pairs], values)


class RunMatrices(Mapping[str, Ranking]):
    """A run in the order of ``rank``; as a mapping, it gives each query's ``Ranking``.

    Attributes:
        queries: the ids of those that are answered, none twice.
        documents: the ids of all documents in it, ascending.
        rows: int32 [queries, depth], rows of ``documents``; -1 behind the end of a shorter ranking.
        scores: float32 [queries, depth]; minus infinity there.
    """

    def __init__(
        self, queries: Sequence[str], documents: DocIds, rows: NDArray[np.int32], scores: NDArray[np.float32]
    ) -> None:
        self.queries, self.documents, self.rows, self.scores = list(queries), documents, rows, scores

    @classmethod
    def of(cls, run: Run) -> "RunMatrices":
        """Any run, put into the order of ``rank``; queries without an answer are left out."""
        if isinstance(run, RunMatrices):
            return run
        answered = {query: ranking for query, ranking in run.items() if len(ranking)}
        counts = [len(ranking) for ranking in answered.values()]
        numbers: dict[str, int] = {}
        lines = chain.from_iterable(ranking.documents for ranking in answered.values())
        of_document = np.fromiter((numbers.setdefault(name, len(numbers)) for name in lines), np.int64, sum(counts))
        scores = np.concatenate([np.empty(0, np.float32), *(each.scores for each in answered.values())])
        return cls.arranged(
            list(answered), list(numbers), np.repeat(np.arange(len(counts)), counts), of_document, scores
        )

    @classmethod
    def arranged(
        cls,
        queries: Sequence[str],
        documents: Sequence[str],
        of_query: NDArray[np.int64],
        of_document: NDArray[np.int64],
        scores: ArrayLike,
    ) -> "RunMatrices":
        """A run from its lines, in any order.

        Args:
            queries, documents: different ids; no query is without a line.
            of_query, of_document: which of them each line is of [lines].
            scores: [lines].
        """
        check_columns(documents, "document id")
        rounded = _float32(scores)
        if not np.isfinite(rounded).all():
            line = int(np.flatnonzero(~np.isfinite(rounded))[0])
            name = documents[of_document[line]]
            raise EncoreError(f"query {queries[of_query[line]]}: the score of document {name} {NOT_FINITE}")
        known = DocIds.of(documents)
        places = known.places().astype(np.int32)
        rows = places[of_document]
        if not _lines_in_order(of_query, rounded, rows):
            order = np.lexsort((-rows, -rounded, of_query))
            of_query, rounded, rows = of_query[order], rounded[order], rows[order]
        counts = np.bincount(of_query, minlength=len(queries))
        column = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        found = cls(queries, known.of_rows(np.argsort(places)), *_empty(counts))
        found.rows[of_query, column], found.scores[of_query, column] = rows, rounded
        ascending = np.sort(found.rows, axis=1)
        repeated = ((ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] >= 0)).any(axis=1)
        if repeated.any():
            raise EncoreError(f"query {found.queries[int(np.flatnonzero(repeated)[0])]}: {REPEATED}")
        return found

    @classmethod
    def joined(cls, parts: Iterable["RunMatrices"]) -> "RunMatrices":
        """A run from those of other queries each, in their order; only one part's own ids are held at a time."""
        numbers: dict[str, int] = {}
        held: list[tuple[list[str], NDArray[np.int32], NDArray[np.float32]]] = []
        for part in parts:
            own = [numbers.setdefault(name, len(numbers)) for name in part.documents]
            held.append((part.queries, np.array([*own, -1], np.int32)[part.rows], part.scores))  # -1 stays
        known = DocIds.of(numbers)
        places = known.places()
        ascending = np.append(places, -1).astype(np.int32)
        queries = [query for own, _, _ in held for query in own]
        shape = len(queries), max((rows.shape[1] for _, rows, _ in held), default=0)
        found = cls(queries, known.of_rows(np.argsort(places)), np.empty(shape, np.int32), np.empty(shape, np.float32))
        last = len(queries)
        while held:  # from the end, so that each part's memory is free once it is copied
            _, rows, scores = held.pop()
            first, width = last - len(rows), rows.shape[1]
            found.rows[first:last, :width], found.scores[first:last, :width] = ascending[rows], scores
            found.rows[first:last, width:], found.scores[first:last, width:] = -1, -np.inf
            last = first
        return found

    @classmethod
    def chosen(
        cls,
        queries: Sequence[str],
        documents: DocIds,
        rows: NDArray[np.int64],
        scores: NDArray[np.float32],
    ) -> "RunMatrices":
        """A run from a search whose hits are in the order of ``rank``, as many for each query.

        Args:
            documents: the ids of a collection, in its order.
            rows: rows of the collection [queries, depth].
            scores: float32 [queries, depth], without -0.0.
        """
        if not rows.size:
            return cls([], DocIds.of([]), *_empty(np.empty(0, np.int64)))
        used = np.zeros(len(documents), dtype=bool)
        used[rows] = True
        kept = np.flatnonzero(used)
        found = documents.of_rows(kept)
        places = found.places()
        own = np.empty(len(documents), np.int32)
        own[kept] = places
        return cls(queries, found.of_rows(np.argsort(places)), own[rows], scores)

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __contains__(self, query: object) -> bool:
        return query in self._place

    def __getitem__(self, query: str) -> Ranking:
        place = self._place[query]
        end = int(self.lengths[place])
        return Ranking(self._names[self.rows[place, :end]].tolist(), self.scores[place, :end])

    def places(self, queries: Sequence[str]) -> NDArray[np.int64]:
        """Positions of queries among those that are answered, [queries]; -1 for one that is not."""
        return np.array([self._place.get(query, -1) for query in queries], dtype=np.int64)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of documents that each query found, at least 1 [queries]."""
        lengths: NDArray[np.int64] = (self.rows >= 0).sum(axis=1)
        return lengths

    def cut(self, depth: int) -> "RunMatrices":
        """The first ``depth`` documents of each query."""
        return RunMatrices(self.queries, self.documents, self.rows[:, :depth], self.scores[:, :depth])

    def without(self, out: NDArray[np.bool_]) -> "RunMatrices":
        """The run without some hits [queries, depth]; those below move up, and a query that has none left is absent."""
        places = np.flatnonzero(out.any(axis=1))
        rows, scores = self.rows.copy(), self.scores.copy()
        order = np.argsort(out[places], axis=1, kind="stable")
        for each, missing in ((rows, -1), (scores, -np.inf)):
            each[places] = np.take_along_axis(np.where(out[places], missing, each[places]), order, axis=1)
        left = rows[:, 0] >= 0 if rows.size else np.empty(0, dtype=bool)
        queries = [query for query, stays in zip(self.queries, left.tolist(), strict=True) if stays]
        return RunMatrices(queries, self.documents, rows[left], scores[left])

    def of_whole_documents(self) -> "RunMatrices":
        """A run over passages as one over their documents, each with its best passage's score (MaxP)."""
        names, whole = np.unique([whole_id(name) for name in self.documents], return_inverse=True)
        query, column = np.nonzero(self.rows >= 0)
        lines = query * len(names) + whole[self.rows[query, column]]
        _, best = np.unique(lines, return_index=True)  # the first line of each, since scores descend
        query, column = query[best], column[best]
        documents = whole[self.rows[query, column]]
        return RunMatrices.arranged(self.queries, names.tolist(), query, documents, self.scores[query, column])

    def check(self) -> None:
        """Refuse matrices that a damaged file could give."""
        rows, scores = self.rows, self.scores
        if rows.ndim != 2 or rows.shape != scores.shape or len(rows) != len(self.queries):
            raise EncoreError(
                f"rows {rows.shape} and scores {scores.shape} of {len(self.queries)} queries do not match"
            )
        if (rows.dtype, scores.dtype) != (np.int32, np.float32):
            raise EncoreError(f"rows are {rows.dtype} and scores {scores.dtype}, not int32 and float32")
        if not rows.size:
            return
        if rows.min() < -1 or rows.max() >= len(self.documents):
            raise EncoreError(
                f"rows are from {rows.min()} to {rows.max()}, but there are {len(self.documents)} documents"
            )
        found = rows >= 0
        if not np.isfinite(scores[found]).all():
            raise EncoreError("a score is not a finite number")
        higher, equal = scores[:, :-1] > scores[:, 1:], scores[:, :-1] == scores[:, 1:]
        in_order = higher | (equal & (rows[:, :-1] > rows[:, 1:])) | ~found[:, 1:]
        if not in_order.all() or not found[:, 0].all() or (found[:, 1:] & ~found[:, :-1]).any():
            raise EncoreError("a ranking is empty or not in its order")

    @cached_property
    def _place(self) -> dict[str, int]:
        return {query: place for place, query in enumerate(self.queries)}

    @cached_property
    def _names(self) -> NDArray[np.object_]:
        return np.array(list(self.documents), dtype=object)


def whole_id(part: str) -> str:
    """The id of the document that a passage is of, whose own id has a # and a number behind that."""
    return part.rpartition("#")[0]


def check_columns(names: Sequence[str], kind: str) -> None:
    """Refuse as ``checked_column`` ids that a column of TREC's runs cannot hold."""
    if " ".join(names).split() != list(names):
        for name in names:
            checked_column(name, kind)


def checked_column(name: str, kind: str) -> str:
    """An id or tag that a column of a run can hold; ``kind`` says what it is in the EncoreError about another."""
    if name.split() != [name]:
        raise EncoreError(
            f"{kind} {name!r} is empty or has blanks, which TREC's columns cannot hold; rename it in the collection"
        )
    return name


def _float32(scores: ArrayLike) -> NDArray[np.float32]:
    """Scores as runs have them: adding zero turns -0.0, which prints differently, into 0.0."""
    return np.asarray(scores, dtype=np.float32) + np.float32(0)


def _empty(lengths: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    shape = (len(lengths), int(lengths.max(initial=0)))
    return np.full(shape, -1, np.int32), np.full(shape, -np.inf, np.float32)


def _lines_in_order(of_query: NDArray[np.int64], scores: NDArray[np.float32], rows: NDArray[np.int32]) -> bool:
    """True if lines come query by query, each in the order of ``rank``."""
    later, same = of_query[1:] > of_query[:-1], of_query[1:] == of_query[:-1]
    falls = (scores[:-1] > scores[1:]) | ((scores[:-1] == scores[1:]) & (rows[:-1] >= rows[1:]))
    return bool((later | (same & falls)).all())

"""Where a run has what is relevant: all queries at once, and no id is looked at but those that are judged."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encore.data.rankings import Run, RunMatrices

Grades = Mapping[str, Mapping[str, int]]  # query id -> document id -> grade
Integers = NDArray[np.int64]
COMPARED = 2**22  # hits of a run that are looked at together


@dataclass(frozen=True)
class Hits:
    """The documents of positive grade of a split, and those of them that a run found.

    Attributes:
        run: as matrices.
        grades: of all queries, whether the run answers them or not.
        places: the row of each query of ``grades`` in the run [queries]; -1 for one without an answer.
        judged_query, judged: of each positive grade, which query it is of, and the grade, int64 [judged].
        query, found, grade: which query [found], which document, and its grade, of those that were found.
        column: int64 [found], its place in its query's ranking, from 0; ascending within a query.
    """

    run: RunMatrices
    grades: Grades
    places: Integers
    judged_query: Integers
    judged: Integers
    query: Integers
    found: list[str]
    grade: Integers
    column: Integers

    @classmethod
    def of(cls, run: Run, grades: Grades) -> "Hits":
        """What a run found of the documents of positive grade."""
        matrices = RunMatrices.of(run)
        places = matrices.places(list(grades))
        pairs = [
            (number, document, grade)
            for number, judged in enumerate(grades.values())
            for document, grade in judged.items()
            if grade > 0
        ]
        query = np.array([number for number, _, _ in pairs], dtype=np.int64)
        grade = np.array([grade for _, _, grade in pairs], dtype=np.int64)
        rows = matrices.documents.rows([document for _, document, _ in pairs])
        column = _columns(matrices, places[query], rows)
        order = np.lexsort((column, query))
        order = order[column[order] >= 0]
        found = [pairs[place][1] for place in order.tolist()]
        return cls(matrices, grades, places, query, grade, query[order], found, grade[order], column[order])


def parts(run: RunMatrices, pairs: int) -> list[slice]:
    """Pairs of a query and a document, so many at once that their rankings fit in memory together."""
    step = max(1, COMPARED // max(1, run.rows.shape[1]))
    return [slice(first, first + step) for first in range(0, pairs, step)]


def _columns(run: RunMatrices, places: Integers, rows: Integers) -> Integers:
    """The places of documents in rankings, by their rows [pairs]; -1 for those not found."""
    columns = np.full(len(rows), -1, dtype=np.int64)
    known = np.flatnonzero((places >= 0) & (rows >= 0))
    for part in parts(run, len(known)):
        pairs = known[part]
        same = run.rows[places[pairs]] == rows[pairs, None]
        columns[pairs] = np.where(same.any(axis=1), same.argmax(axis=1), -1)
    return columns

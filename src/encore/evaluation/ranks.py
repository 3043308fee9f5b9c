"""Where a run has what is relevant: ranks of all queries at once, without a look at other documents' ids.

Nothing is sorted. A judged document's rank is found by counting: one more than the documents with a higher float32
score, plus those of equal score whose id is greater (trec_eval's order). Documents of one score share a block of ranks,
and could be in another order there. Ties with documents that the run cut off are unknown and not counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encore.data.rankings import Run, RunMatrices

Grades = Mapping[str, Mapping[str, int]]  # query id -> document id -> grade
Integers = NDArray[np.int64]
COMPARED = 2**22  # hits of a run that are looked at together


@dataclass(frozen=True)
class JudgedRanks:
    """The ranks of all queries' documents of positive grade, with all that was judged for them.

    Args:
        queries: how many queries.
        query: int64 [found], which query, ascending, of the retrieved documents of positive grade.
        ranks: int64 [found], their ranks, from 1, ascending within a query.
        grades: int64 [found], their grades.
        judged_query: int64 [judged], which query, ascending, of all positive grades, retrieved or not.
        judged: int64 [judged], these grades, descending within a query.
    """

    queries: int
    query: Integers
    ranks: Integers
    grades: Integers
    judged_query: Integers
    judged: Integers


@dataclass(frozen=True)
class Hits:
    """The documents of positive grade of a split, and those of them that a run found.

    Attributes:
        run: as matrices.
        grades: of all queries, whether the run answers them or not.
        places: the row of each query of ``grades`` in the run [queries]; -1 for one without an answer.
        judged_query, judged: of each positive grade, which query it is of, and the grade, int64 [judged].
        query, grade: which query, ascending, and which grade, of those documents that were found, int64 [found].
        above, equal, greater: how many of its query's documents score higher than each one, or equal (itself among
            them), or equal with a greater id, int64 [found].
    """

    run: RunMatrices
    grades: Grades
    places: Integers
    judged_query: Integers
    judged: Integers
    query: Integers
    grade: Integers
    above: Integers
    equal: Integers
    greater: Integers

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
        known = np.flatnonzero((places[query] >= 0) & (rows >= 0))
        found, counts = _counted(matrices, places[query[known]], rows[known])
        kept = known[found]
        return cls(matrices, grades, places, query, grade, query[kept], grade[kept], *counts[:, found])

    def usual(self) -> JudgedRanks:
        """The rank of each document of positive grade, in trec_eval's order of ties."""
        return self._ranked(1 + self.above + self.greater)

    def extremes(self) -> tuple[JudgedRanks, JudgedRanks]:
        """The worst and the best ranks of all documents of positive grade over all orders of tied scores.

        Whatever the measure here, moving a better document up never lowers it, so its highest value has every block
        sorted by descending grade, and its lowest by ascending grade (McSherry & Najork, ECIR 2008, compute the mean
        over orders; a table needs the two ends).
        """
        rivals = self._rivals()
        return self._ranked(self.above + self.equal - rivals), self._ranked(1 + self.above + rivals)

    def _ranked(self, ranks: Integers) -> JudgedRanks:
        """``JudgedRanks`` from the ranks of the documents that were found, from 1 [found]."""
        order = np.lexsort((ranks, self.query))
        ideal = np.lexsort((-self.judged, self.judged_query))
        return JudgedRanks(
            queries=len(self.grades),
            query=self.query[order],
            ranks=ranks[order],
            grades=self.grade[order],
            judged_query=self.judged_query[ideal],
            judged=self.judged[ideal],
        )

    def _rivals(self) -> Integers:
        """How many of the relevant documents that share its block of ranks go before each one [found].

        Those of a higher grade do, and of its own grade those that come first.
        """
        order = np.lexsort((-self.grade, self.above, self.query))
        block = np.stack([self.query[order], self.above[order]])  # as many are above two documents only if they tie
        begins = np.flatnonzero(np.any(block[:, 1:] != block[:, :-1], axis=0)) + 1
        starts = np.concatenate([[0], begins])
        rivals = np.empty(len(order), dtype=np.int64)
        rivals[order] = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
        return rivals


def _counted(run: RunMatrices, places: Integers, rows: Integers) -> tuple[NDArray[np.bool_], Integers]:
    """Whether queries found documents, by their rows [pairs], and ``above``, ``equal`` and ``greater`` [3, pairs].

    So many pairs at once that their rankings fit in memory together.
    """
    found, counts = np.zeros(len(rows), dtype=np.bool_), np.zeros((3, len(rows)), dtype=np.int64)
    step = max(1, COMPARED // max(1, run.rows.shape[1]))
    for part in (slice(first, first + step) for first in range(0, len(rows), step)):
        scores, own = run.scores[places[part]], run.rows[places[part]]
        same = own == rows[part, None]
        found[part] = same.any(axis=1)
        score = scores[np.arange(len(scores)), same.argmax(axis=1)][:, None]
        equal = scores == score
        counts[0, part] = (scores > score).sum(axis=1)
        counts[1, part] = equal.sum(axis=1)
        counts[2, part] = (equal & (own > rows[part, None])).sum(axis=1)  # rows are by ascending id
    return found, counts

"""The second evaluator: the same measures, written again in NumPy without code of ir-measures.

It does not even sort. A judged document's rank is found by counting: one more than the documents with a higher
float32 score, plus those of equal score whose id is greater (trec_eval's order). Both evaluators must agree, or
nothing is written.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encore.config.measures import NAMES
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.evaluation.hits import Hits, Integers, parts
from encore.evaluation.measures import Measure

Floats = NDArray[np.float64]


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
class Counts:
    """Of each document that was found, how many of its query's score higher, or equal, or equal with a greater id.

    All int64 [found]; ``equal`` counts the document itself.
    """

    above: Integers
    equal: Integers
    greater: Integers


def count(hits: Hits) -> Counts:
    """The keys of a rank, in any order of ties."""
    place = hits.places[hits.query]
    counts = np.empty((3, len(place)), dtype=np.int64)
    for part in parts(hits.run, len(place)):
        scores, rows = hits.run.scores[place[part]], hits.run.rows[place[part]]
        own = np.arange(len(scores)), hits.column[part]
        equal = scores == scores[own][:, None]
        counts[0, part] = (scores > scores[own][:, None]).sum(axis=1)
        counts[1, part] = equal.sum(axis=1)
        counts[2, part] = (equal & (rows > rows[own][:, None])).sum(axis=1)  # rows are by ascending id
    return Counts(*counts)


def judged_ranks(hits: Hits, counts: Counts) -> JudgedRanks:
    """The rank of each document of positive grade, in trec_eval's order of ties."""
    return sorted_ranks(hits, 1 + counts.above + counts.greater)


def sorted_ranks(hits: Hits, ranks: Integers) -> JudgedRanks:
    """``JudgedRanks`` from the ranks of the documents that were found, from 1 [found]."""
    order = np.lexsort((ranks, hits.query))
    ideal = np.lexsort((-hits.judged, hits.judged_query))
    return JudgedRanks(
        queries=len(hits.grades),
        query=hits.query[order],
        ranks=ranks[order],
        grades=hits.grade[order],
        judged_query=hits.judged_query[ideal],
        judged=hits.judged[ideal],
    )


def measure_values(measure: Measure, place: JudgedRanks) -> Floats:
    """The values of one measure, float64 [queries], each in [0, 1].

    With r the ranks of relevant documents up to the cutoff k, and n the number of relevant documents that are judged:
    RR = 1/min r; R = |r|/n; P = |r|/k; Success = [r not empty]; AP = (1/n) sum_i i/r_i;
    nDCG = sum grade/log2(rank + 1) over the ranking, by the same sum over the ideal one. Sources: RR, Voorhees (TREC-8
    1999); AP, Buckley & Voorhees (SIGIR 2000); nDCG, Järvelin & Kekäläinen (ACM TOIS 20(4), 2002) with the gains and
    discounts of trec_eval; Success@k is DPR's top-k accuracy (Karpukhin et al. 2020).
    """
    counted = (place.grades >= measure.rel) & _within(place.ranks, measure.cutoff)
    query, ranks = place.query[counted], place.ranks[counted]
    relevant = np.bincount(place.judged_query[place.judged >= measure.rel], minlength=place.queries)
    found = np.bincount(query, minlength=place.queries)
    values: Floats = np.zeros(place.queries)
    some = found > 0
    if measure.name == "RR":
        first = np.full(place.queries, np.inf)
        np.minimum.at(first, query, ranks)
        values = 1 / first
    elif measure.name == "R":
        values[some] = found[some] / relevant[some]
    elif measure.name == "P":
        values[some] = found[some] / float(measure.cutoff or 1)
    elif measure.name == "Success":
        values[some] = 1
    elif measure.name == "AP":
        precision = _numbered(query) / ranks
        values[some] = _sums(query, precision, place.queries)[some] / relevant[some]
    elif measure.name == "nDCG":
        gained = _gain(place.query, place.ranks, place.grades, measure.cutoff, place.queries)
        ideal = _gain(place.judged_query, _numbered(place.judged_query), place.judged, measure.cutoff, place.queries)
        values[some] = gained[some] / ideal[some]
    else:
        raise EncoreError(f"measure {str(measure)!r} is unknown to the second evaluator{nearest(measure.name, NAMES)}")
    return values


def _gain(query: Integers, ranks: Integers, grades: Integers, cutoff: int | None, queries: int) -> Floats:
    inside = _within(ranks, cutoff)
    return _sums(query[inside], grades[inside] / np.log2(ranks[inside] + 1), queries)


def _sums(query: Integers, numbers: Floats, queries: int) -> Floats:
    return np.bincount(query, weights=numbers, minlength=queries).astype(np.float64)


def _numbered(query: Integers) -> Integers:
    """1, 2, 3, … within each query; queries are in ascending order."""
    return np.arange(1, len(query) + 1) - np.searchsorted(query, query)


def _within(ranks: Integers, cutoff: int | None) -> NDArray[np.bool_]:
    return ranks <= (cutoff if cutoff is not None else np.iinfo(np.int64).max)

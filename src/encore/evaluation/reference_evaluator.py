"""The second evaluator: the same measures, written anew in NumPy, and sharing no code with ir-measures.

It does not even sort. A judged document's rank is found by counting: one more than the documents with a higher
float32 score, plus those of equal score whose id is greater (trec_eval's order). Both evaluators must agree, or
nothing is written.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encore.data.runs import Ranking
from encore.evaluation.measures import Measure

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class JudgedRanks:
    """The ranks of a query's documents of positive grade, with all that was judged for the query.

    Args:
        ranks: int64 [found], from 1, ascending, of the retrieved documents of positive grade.
        grades: int64 [found], their grades.
        judged: int64 [judged], all positive grades of the query, retrieved or not, descending.
    """

    ranks: Integers
    grades: Integers
    judged: Integers


def judged_ranks(ranking: Ranking | None, grades: dict[str, int]) -> JudgedRanks:
    """The rank of each document of positive grade, found by counting, in trec_eval's order of ties.

    Args:
        ranking: the query's; None where the run has no answer to it.
        grades: grade by document id.
    """
    found = retrieved_relevant(ranking, grades) if ranking is not None else {}
    ranks = np.array([_rank(ranking, place) for place in found] if ranking is not None else [], dtype=np.int64)
    return sorted_ranks(ranks, np.array(list(found.values()), dtype=np.int64), grades)


def retrieved_relevant(ranking: Ranking, grades: dict[str, int]) -> dict[int, int]:
    """Grades of the retrieved documents of positive grade, by their index in the ranking's arrays."""
    answered = set(ranking.documents)
    found = [document for document, grade in grades.items() if grade > 0 and document in answered]
    return {ranking.documents.index(document): grades[document] for document in found}


def sorted_ranks(ranks: Integers, found: Integers, grades: dict[str, int]) -> JudgedRanks:
    """``JudgedRanks`` from ranks in any order.

    Args:
        ranks: int64 [found], from 1.
        found: int64 [found], the grades of these documents.
        grades: all grades of the query, by document id.
    """
    order = np.argsort(ranks)
    judged = np.array([grade for grade in grades.values() if grade > 0], dtype=np.int64)
    return JudgedRanks(ranks[order], found[order], np.sort(judged)[::-1])


def measure_value(measure: Measure, place: JudgedRanks) -> float:
    """The value of one measure for one query, in [0, 1].

    With r the ranks of relevant documents up to the cutoff k, and n the number of relevant documents that are judged:
    RR = 1/min r; R = |r|/n; P = |r|/k; Success = [r not empty]; AP = (1/n) sum_i i/r_i;
    nDCG = sum grade/log2(rank + 1) over the ranking, by the same sum over the ideal one. Sources: RR, Voorhees (TREC-8
    1999); AP, Buckley & Voorhees (SIGIR 2000); nDCG, Järvelin & Kekäläinen (ACM TOIS 20(4), 2002) with the gains and
    discounts of trec_eval; Success@k is DPR's top-k accuracy (Karpukhin et al. 2020).
    """
    ranks = place.ranks[(place.grades >= measure.rel) & _within(place.ranks, measure.cutoff)]
    relevant = int((place.judged >= measure.rel).sum())
    if relevant == 0 or len(ranks) == 0:
        return 0.0
    if measure.name == "RR":
        return float(1 / ranks[0])
    if measure.name == "R":
        return len(ranks) / relevant
    if measure.name == "P":
        return len(ranks) / float(measure.cutoff or 1)
    if measure.name == "Success":
        return 1.0
    if measure.name == "AP":
        return float((np.arange(1, len(ranks) + 1) / ranks).sum() / relevant)
    return _ndcg(place, measure.cutoff)


def _ndcg(place: JudgedRanks, cutoff: int | None) -> float:
    ideal_ranks = np.arange(1, len(place.judged) + 1)
    return _gain(place.ranks, place.grades, cutoff) / _gain(ideal_ranks, place.judged, cutoff)


def _gain(ranks: Integers, grades: Integers, cutoff: int | None) -> float:
    inside = _within(ranks, cutoff)
    return float((grades[inside] / np.log2(ranks[inside] + 1)).sum())


def _within(ranks: Integers, cutoff: int | None) -> NDArray[np.bool_]:
    return ranks <= (cutoff if cutoff is not None else np.iinfo(np.int64).max)


def _rank(ranking: Ranking, place: int) -> int:
    """Rank of the document at ``place``, by counting those that stand before it."""
    score, document = ranking.scores[place], ranking.documents[place]
    tied = np.flatnonzero(ranking.scores == score)
    greater = sum(ranking.documents[other] > document for other in tied) if len(tied) > 1 else 0
    return 1 + int((ranking.scores > score).sum()) + greater

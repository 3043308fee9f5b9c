"""How far a value could move if documents of equal score stood in another order.

Documents of one score share a block of ranks. Whatever the measure here, moving a better document up never lowers it,
so its highest value has every block sorted by descending grade, and its lowest by ascending grade (McSherry & Najork,
ECIR 2008, compute the mean over orders; a table needs the two ends). Ties with documents that the run cut off are
unknown and not counted.
"""

import numpy as np
from numpy.typing import NDArray

from encore.data.runs import Ranking
from encore.evaluation.reference_evaluator import Integers, JudgedRanks, retrieved_relevant, sorted_ranks


def has_ties(scores: NDArray[np.float32]) -> bool:
    """Whether any two scores of a ranking, in its own order, are equal."""
    return bool((scores[1:] == scores[:-1]).any())


def extremes(ranking: Ranking, grades: dict[str, int]) -> tuple[JudgedRanks, JudgedRanks]:
    """The worst and the best ranks of a query's documents of positive grade over all orders of tied scores.

    For any measure that no rise of a relevant document lowers, these give its lowest and its highest value (after
    McSherry & Najork, ECIR 2008).
    """
    found = retrieved_relevant(ranking, grades)
    scores = ranking.scores[list(found)]
    gained = np.array(list(found.values()), dtype=np.int64)
    rivals = (scores[:, None] == scores[None, :]) & _before(gained)  # the column's document goes first
    above = (ranking.scores[None, :] > scores[:, None]).sum(axis=1)
    last = (ranking.scores[None, :] >= scores[:, None]).sum(axis=1)
    best = 1 + above + rivals.sum(axis=1)
    worst = last - rivals.sum(axis=1)
    return sorted_ranks(worst, gained, grades), sorted_ranks(best, gained, grades)


def _before(gained: Integers) -> NDArray[np.bool_]:
    """[found, found]: the column's grade is higher than the row's, or equal and it comes first; never both ways."""
    place = np.arange(len(gained))
    equal = (gained[None, :] == gained[:, None]) & (place[None, :] < place[:, None])
    return (gained[None, :] > gained[:, None]) | equal

"""How far a value could move if documents of equal score were in another order.

Documents of one score share a block of ranks. Whatever the measure here, moving a better document up never lowers it,
so its highest value has every block sorted by descending grade, and its lowest by ascending grade (McSherry & Najork,
ECIR 2008, compute the mean over orders; a table needs the two ends). Ties with documents that the run cut off are
unknown and not counted.
"""

import numpy as np

from encore.evaluation.hits import Hits, Integers
from encore.evaluation.reference_evaluator import Counts, JudgedRanks, sorted_ranks


def extremes(hits: Hits, counts: Counts) -> tuple[JudgedRanks, JudgedRanks]:
    """The worst and the best ranks of all documents of positive grade over all orders of tied scores.

    For any measure that no rise of a relevant document lowers, these give its lowest and its highest value (after
    McSherry & Najork, ECIR 2008).
    """
    rivals = _rivals(hits, counts.above)
    best = 1 + counts.above + rivals
    worst = counts.above + counts.equal - rivals
    return sorted_ranks(hits, worst), sorted_ranks(hits, best)


def _rivals(hits: Hits, above: Integers) -> Integers:
    """How many of the relevant documents that share its block of ranks go before each one [found].

    Those of a higher grade do, and of its own grade those that come first.
    """
    order = np.lexsort((-hits.grade, above, hits.query))
    block = np.stack([hits.query[order], above[order]])  # as many are above two documents only if they are tied
    begins = np.flatnonzero(np.any(block[:, 1:] != block[:, :-1], axis=0)) + 1
    starts = np.concatenate([[0], begins])
    rivals = np.empty(len(order), dtype=np.int64)
    rivals[order] = np.arange(len(order)) - np.repeat(starts, np.diff([*starts, len(order)]))
    return rivals

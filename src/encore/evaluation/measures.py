"""The measures that a table may request, in NumPy from the ranks of what is relevant.

An expression has ir-measures' spelling: ``RR@10``, ``R(rel=3)@100``, ``nDCG@10``, ``AP``. Documents of at least
grade ``rel`` (1 by default) count as relevant; nDCG takes the grade itself as gain, as trec_eval does, and knows no
threshold. A judged query always counts. It gets 0 when the run has no answer to it (``trec_eval -c``, MS MARCO's
script), and also when none of its documents reaches the threshold: trec_eval's recall, precision and reciprocal rank
of nothing are 0.

ir-measures is the second evaluator (``check_from_files.py``): it shares no code and no reading with this one.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from encore.config.datasets import Measure
from encore.data.rankings import Run
from encore.errors import EncoreError
from encore.evaluation.ranks import Grades, Hits, Integers, JudgedRanks

Floats = NDArray[np.float64]


def measure_values(measures: Iterable[Measure], grades: Grades, run: Run) -> dict[Measure, dict[str, float]]:
    """Each measure's value in [0, 1], by measure, then by query id, for every query of ``grades``."""
    ranks = Hits.of(run, grades).usual()
    return {measure: dict(zip(grades, values(measure, ranks).tolist(), strict=True)) for measure in measures}


def values(measure: Measure, place: JudgedRanks) -> Floats:
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
        raise EncoreError(f"measure {str(measure)!r} has no formula here")
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

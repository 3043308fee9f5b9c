"""The measures a table may ask for, and their values from ir-measures.

An expression is ir-measures' own spelling: ``RR@10``, ``R(rel=3)@100``, ``nDCG@10``, ``AP``. Documents of at least
grade ``rel`` (1 by default) count as relevant; nDCG takes the grade itself as gain, as trec_eval does, and knows no
threshold. A judged query always counts. It gets 0 when the run has no answer to it (``trec_eval -c``, MS MARCO's
script), and also when none of its documents reaches the threshold: trec_eval's recall, precision and reciprocal rank
of nothing are 0.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from encore.config.measures import Measure, parse_measure
from encore.data.rankings import Run
from encore.evaluation.hits import Grades, Hits

__all__ = ["Grades", "Measure", "measure_values", "parse_measure"]

COUNTING = ("R", "P", "Success")  # how many of the first k are relevant


def measure_values(measures: Iterable[Measure], grades: Grades, run: Run) -> dict[Measure, dict[str, float]]:
    """Each measure's value for each judged query, computed by ir-measures.

    Returns:
        By measure, then by query id, for every query of ``grades``: a value in [0, 1].
    """
    return values_of(measures, Hits.of(run, grades))


def values_of(measures: Iterable[Measure], hits: Hits) -> dict[Measure, dict[str, float]]:
    """The same of what a run found.

    A value depends on the ranks and grades of what is relevant and on nothing else, so ir-measures is given one query
    of each such shape, made up, and its value counts for all that are alike. Ranks have an order already
    (``rankings.rank``): ir-measures' providers break ties in different ways.
    """
    found: dict[Measure, dict[str, float]] = {}
    alike: dict[tuple[int | None, bool], list[Measure]] = {}
    for measure in measures:
        alike.setdefault((measure.cutoff, measure.name in COUNTING), []).append(measure)
    for (cutoff, counting), group in alike.items():
        shapes = _shapes(hits, cutoff, counting)
        values = _by_ir_measures(group, list(dict.fromkeys(shape for shape in shapes if shape)))
        for measure, its in values.items():
            found[measure] = {
                query: its[shape] if shape else 0.0 for query, shape in zip(hits.grades, shapes, strict=True)
            }
    return found


class Shape(NamedTuple):
    """What a measure may know of a query: ``columns`` and ``grades`` of what was found, and all positive grades."""

    columns: tuple[int, ...]
    grades: tuple[int, ...]
    judged: tuple[int, ...]

    def judgments(self) -> dict[str, int]:
        """Grades by document; what was found comes first."""
        missed = Counter(self.judged) - Counter(self.grades)
        return {f"relevant {place}": grade for place, grade in enumerate([*self.grades, *missed.elements()])}

    def ranking(self) -> dict[str, float]:
        """Down to the last relevant document; one document at least, as it is an answer."""
        names = [f"other {place}" for place in range(max(self.columns, default=0) + 1)]
        for place, column in enumerate(self.columns):
            names[column] = f"relevant {place}"
        return {name: -float(place) for place, name in enumerate(names)}


def _shapes(hits: Hits, cutoff: int | None, counting: bool) -> list[Shape | None]:
    """The shape of each query down to a rank; None where a value is 0: no answer, or nothing to find."""
    queries = np.arange(len(hits.grades) + 1)
    bounds, ends = (np.searchsorted(each, queries).tolist() for each in (hits.query, hits.judged_query))
    columns, grades, judged = hits.column.tolist(), hits.grade.tolist(), hits.judged.tolist()
    shapes: list[Shape | None] = []
    for query, place in enumerate(hits.places.tolist()):
        wanted = sorted(judged[ends[query] : ends[query + 1]])
        if place < 0 or not wanted:
            shapes.append(None)
            continue
        first, end = bounds[query], bounds[query + 1]
        if cutoff is not None:
            end = bisect_left(columns, cutoff, first, end)
        if counting:  # at whatever ranks
            its, graded = range(end - first), sorted(grades[first:end])
        else:
            its, graded = columns[first:end], grades[first:end]
        shapes.append(Shape(tuple(its), tuple(graded), tuple(wanted)))
    return shapes


def _by_ir_measures(measures: list[Measure], shapes: list[Shape]) -> dict[Measure, dict[Shape, float]]:
    import ir_measures  # here, so that a plan can be checked without it

    theirs = {_theirs(measure): measure for measure in measures}
    found: dict[Measure, dict[Shape, float]] = {measure: {} for measure in measures}
    judgments = {str(number): shape.judgments() for number, shape in enumerate(shapes)}
    rankings = {str(number): shape.ranking() for number, shape in enumerate(shapes)}
    for metric in ir_measures.iter_calc(list(theirs), judgments, rankings):
        found[theirs[metric.measure]][shapes[int(metric.query_id)]] = float(metric.value)
    return found


def _theirs(measure: Measure):  # type: ignore[no-untyped-def]  # ir-measures' own object; its package has no types
    import ir_measures

    parameters = {} if measure.rel == 1 else {"rel": measure.rel}
    if measure.cutoff is not None:
        parameters["cutoff"] = measure.cutoff
    return getattr(ir_measures, measure.name)(**parameters)

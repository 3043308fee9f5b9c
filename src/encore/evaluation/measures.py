"""The measures a table may ask for, and their values from ir-measures.

An expression is ir-measures' own spelling: ``RR@10``, ``R(rel=3)@100``, ``nDCG@10``, ``AP``. Documents of at least
grade ``rel`` (1 unless told) count as relevant; nDCG takes the grade itself as gain, as trec_eval does, and knows no
threshold. A judged query always counts. It gets 0 when the run has no answer to it (``trec_eval -c``, MS MARCO's
script), and also when none of its documents reaches the threshold: trec_eval's recall, precision and reciprocal rank
of nothing are 0.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np

from encore.config.measures import Measure, parse_measure
from encore.data.rankings import Run
from encore.evaluation.hits import Grades, Hits

__all__ = ["Grades", "Measure", "measure_values", "parse_measure"]

COUNTING = ("R", "P", "Success")  # how many of the first k are relevant, at whatever ranks


def measure_values(measures: Iterable[Measure], grades: Grades, run: Run) -> dict[Measure, dict[str, float]]:
    """Each measure's value for each judged query, computed by ir-measures.

    Returns:
        By measure, then by query id, for every query of ``grades``: a value in [0, 1].
    """
    return values_of(measures, Hits.of(run, grades))


def values_of(measures: Iterable[Measure], hits: Hits) -> dict[Measure, dict[str, float]]:
    """The same of what a run found.

    Only the order of a ranking is handed on, not its scores: ir-measures' providers break ties in different ways, and
    the order (``rankings.rank``) is settled. Only what is relevant has its name there. A measure at k is given k
    documents, which is all that it may look at, and of these the ones down to the last that is relevant, or the
    relevant ones alone where it does but count them: the others change no value, and take most time.
    """
    found: dict[Measure, dict[str, float]] = {}
    alike: dict[tuple[int | None, bool], list[Measure]] = {}
    for measure in measures:
        alike.setdefault((measure.cutoff, measure.name in COUNTING), []).append(measure)
    judged = {query: dict(documents) for query, documents in hits.grades.items()}
    nothing = [query for query, documents in judged.items() if not documents]  # ir-measures would pass over them
    for (cutoff, counting), group in alike.items():
        found.update(_by_ir_measures(group, judged, dict(_handed_on(hits, cutoff, counting))))
    for of_queries in found.values():
        of_queries.update(dict.fromkeys(nothing, 0.0))
    return found


def _by_ir_measures(
    measures: list[Measure], judged: dict[str, dict[str, int]], ordered: dict[str, dict[str, float]]
) -> dict[Measure, dict[str, float]]:
    import ir_measures  # here, so that a plan can be checked without it

    theirs = {_theirs(measure): measure for measure in measures}
    found: dict[Measure, dict[str, float]] = {measure: {} for measure in measures}
    for metric in ir_measures.iter_calc(list(theirs), judged, ordered):
        found[theirs[metric.measure]][metric.query_id] = float(metric.value)
    return found


def _theirs(measure: Measure):  # type: ignore[no-untyped-def]  # ir-measures' own object; its package has no types
    import ir_measures

    parameters = {} if measure.rel == 1 else {"rel": measure.rel}
    if measure.cutoff is not None:
        parameters["cutoff"] = measure.cutoff
    return getattr(ir_measures, measure.name)(**parameters)


def _handed_on(hits: Hits, cutoff: int | None, counting: bool) -> Iterator[tuple[str, dict[str, float]]]:
    """Each answered query with its ranking, as scores without ties; one document at least, as it is an answer."""
    depth = hits.run.rows.shape[1] if cutoff is None else cutoff
    others = [f" {place}" for place in range(min(depth, hits.run.rows.shape[1]))]  # no id has a blank
    scores = [float(-place) for place in range(len(others))]
    bounds = np.searchsorted(hits.query, np.arange(len(hits.grades) + 1)).tolist()
    columns, places = hits.column.tolist(), hits.places.tolist()
    for query, place, first, end in zip(hits.grades, places, bounds[:-1], bounds[1:], strict=True):
        if place < 0:
            continue
        end = first + bisect_left(columns[first:end], depth)
        if counting:
            names = hits.found[first:end] or others[:1]
        else:
            names = others[: columns[end - 1] + 1 if end > first else 1]
            for at in range(first, end):
                names[columns[at]] = hits.found[at]
        yield query, dict(zip(names, scores, strict=False))

"""The measures a table may ask for, and their values from ir-measures.

An expression is ir-measures' own spelling: ``RR@10``, ``R(rel=3)@100``, ``nDCG@10``, ``AP``. Documents of at least
grade ``rel`` (1 unless told) count as relevant; nDCG takes the grade itself as gain, as trec_eval does, and knows no
threshold. A judged query always counts. It gets 0 when the run has no answer to it (``trec_eval -c``, MS MARCO's
script), and also when none of its documents reaches the threshold: trec_eval's recall, precision and reciprocal rank
of nothing are 0.
"""

from collections.abc import Iterable, Mapping

from encore.config.measures import Measure, parse_measure
from encore.data.runs import Run

__all__ = ["Grades", "Measure", "measure_values", "parse_measure"]

Grades = Mapping[str, Mapping[str, int]]  # query id -> document id -> grade


def measure_values(measures: Iterable[Measure], grades: Grades, run: Run) -> dict[Measure, dict[str, float]]:
    """Each measure's value for each judged query, computed by ir-measures.

    Only the order of a ranking is handed on, not its scores: ir-measures' providers break ties in different ways, and
    the order (``runs.rank``) is settled. A measure at k is given k documents, which is all that it may look at, and of
    these the ones down to the last judged: what stands below changes none of these measures, and takes most time.

    Returns:
        By measure, then by query id, for every query of ``grades``: a value in [0, 1].
    """
    found: dict[Measure, dict[str, float]] = {}
    by_cutoff: dict[int | None, list[Measure]] = {}
    for measure in measures:
        by_cutoff.setdefault(measure.cutoff, []).append(measure)
    judged = {query: dict(documents) for query, documents in grades.items()}
    nothing = [query for query, documents in judged.items() if not documents]  # ir-measures would pass over them
    for cutoff, group in by_cutoff.items():
        ordered = {
            query: _descending(_to_last(run[query].documents[:cutoff], documents))
            for query, documents in judged.items()
            if query in run
        }
        found.update(_by_ir_measures(group, judged, ordered))
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


def _to_last(documents: list[str], judged: Mapping[str, int]) -> list[str]:
    """The head of a ranking that ends with its last judged document; one document at least, as it is an answer."""
    found = judged.keys() & documents
    return documents[: max(map(documents.index, found), default=0) + 1]


def _descending(documents: list[str]) -> dict[str, float]:
    """Scores without ties that keep the order."""
    return dict(zip(documents, map(float, range(len(documents), 0, -1)), strict=True))

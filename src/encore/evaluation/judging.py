"""From a run and judgments to scores: two evaluators that must agree, and the interval over tied scores."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encore.data.collection import Collection, topics
from encore.data.overlap import Overlap, overlap_with_training
from encore.data.runs import Ranking, Run
from encore.errors import EncoreError
from encore.evaluation import has_answer, measures, reference_evaluator, ties
from encore.evaluation.measures import Grades, Measure
from encore.evaluation.scores import RELEVANT, TEXT, Floats, Scored, Scores

TOLERANCE = 1e-9


def judge(run: Run, collection: Collection, spec: Mapping[str, Any]) -> Scores:
    """Score a run on every split that ``spec["splits"]`` names (split -> short name -> expression).

    ``spec["queries"]`` and ``spec["sample"]`` restrict it to the sample of topics that the run was made for. The splits
    of ``spec["judged_by_answers"]`` have no judgments: what the run retrieved is matched with the questions' answers.
    With ``spec["ignore_identical_ids"]`` a document that has the query's id counts as not retrieved; those below it
    move up.

    Raises:
        EncoreError: a measure is unknown, the run answers no query of a split, or the evaluators disagree.
    """
    clusters = collection.clusters()
    run = _without_own(run) if spec.get("ignore_identical_ids") else run
    scores: Scores = {}
    for split, expressions in sorted(spec["splits"].items()):
        wanted = {name: measures.parse_measure(expression) for name, expression in sorted(expressions.items())}
        chosen = topics(collection, split, spec.get("queries"), spec.get("sample", 0))
        if split in spec.get("judged_by_answers", ()):
            grades = has_answer.grades(run, collection, chosen, wanted.values())
        else:
            judged = collection.qrels(split)
            grades = {query: judged[query] for query in chosen}
        overlap = overlap_with_training(collection, split)
        for name, scored in _split(run, grades, wanted, clusters, overlap).items():
            if not scored.answered.any():
                raise EncoreError(f"the run answers no judged query of split {split!r}; search that split first")
            scores[split, name] = scored
    return scores


def summary(scores: Scores) -> dict[str, Any]:
    """Per split: queries judged, queries answered, and each measure's mean. For the manifest and for people."""
    found: dict[str, Any] = {}
    for (split, name), scored in scores.items():
        counts = {"judged": len(scored.queries), "answered": int(scored.answered.sum())}
        found.setdefault(split, counts)[name] = round(float(scored.values.mean()), 6)
    return found


def _without_own(run: Run) -> Run:
    """A run in which no query has the document of its own id for an answer; queries left with none are absent."""
    found = {}
    for query, ranking in run.items():
        keep = [place for place, document in enumerate(ranking.documents) if document != query]
        if keep:
            found[query] = Ranking([ranking.documents[place] for place in keep], ranking.scores[keep])
    return found


def _split(
    run: Run, grades: Grades, wanted: Mapping[str, Measure], clusters: Mapping[str, str], overlap: Overlap
) -> dict[str, Scored]:
    queries = list(grades)
    computed = measures.measure_values(wanted.values(), grades, run)
    ranges = {query: _ranges(run.get(query), dict(grades[query]), list(wanted.values())) for query in queries}
    answered = np.array([query in run for query in queries])
    scored = {}
    for column, (name, measure) in enumerate(wanted.items()):
        values = np.array([computed[measure][query] for query in queries])
        low, again, high = np.array([ranges[query][column] for query in queries]).T
        _agree(measure, queries, values, again)
        scored[name] = Scored(
            queries=queries,
            clusters=[clusters.get(query, query) for query in queries],
            values=values,
            low=np.where(low < again, low, values),  # exactly the value where no order of ties can change it
            high=np.where(high > again, high, values),
            answered=answered,
            shared=_shared(queries, overlap, measure),
        )
    return scored


def _shared(queries: list[str], overlap: Overlap, measure: Measure) -> NDArray[np.int8]:
    """What each query shares with training, where documents of a grade that the measure calls relevant count."""
    relevant = overlap.relevant(measure.rel)
    found = [RELEVANT * (query in relevant) + TEXT * (query in overlap.texts) for query in queries]
    return np.array(found, dtype=np.int8)


def _ranges(ranking: Ranking | None, grades: dict[str, int], wanted: list[Measure]) -> list[tuple[float, float, float]]:
    """For each measure of one query: lowest value, the second evaluator's value, highest value."""
    usual = reference_evaluator.judged_ranks(ranking, grades)
    if ranking is None or not ties.has_ties(ranking.scores):
        return [
            (again, again, again) for again in (reference_evaluator.measure_value(measure, usual) for measure in wanted)
        ]
    worst, best = ties.extremes(ranking, grades)
    return [
        (
            reference_evaluator.measure_value(m, worst),
            reference_evaluator.measure_value(m, usual),
            reference_evaluator.measure_value(m, best),
        )
        for m in wanted
    ]


def _agree(measure: Measure, queries: list[str], first: Floats, again: Floats) -> None:
    apart = np.flatnonzero(np.abs(first - again) > TOLERANCE)
    if len(apart):
        place = int(apart[0])
        raise EncoreError(
            f"the two evaluators disagree on {measure} of query {queries[place]} ({len(apart)} queries in all): "
            f"ir-measures says {first[place]}, ours {again[place]}; nothing was written, please report it as a bug"
        )

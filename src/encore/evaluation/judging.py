"""Score a run by judgments, with the interval over tied scores; ``check_from_files.py`` checks the scores."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encore.config.datasets import Measure, parse_measure
from encore.data import answer_matching
from encore.data.collection import Collection, topics
from encore.data.copies import Overlap, overlap_with_training
from encore.data.rankings import Ranking, Run, RunMatrices, whole_id
from encore.errors import EncoreError
from encore.evaluation import EvaluationProtocol, measures
from encore.evaluation.ranks import Grades, Hits
from encore.evaluation.scores import RELEVANT, TEXT, Scored, Scores

NO_OVERLAP = Overlap(frozenset(), {})


def judge(run: Run, collection: Collection, protocol: EvaluationProtocol) -> Scores:
    """Score a run on every split of a protocol: the scores by split and by the measure's name in tables."""
    clusters = collection.clusters()
    run = RunMatrices.of(run)
    run = run.of_whole_documents() if protocol.scored_by_passages else run
    run = _without_own(run) if protocol.ignore_identical_ids else run
    scores: Scores = {}
    for split, expressions in sorted(protocol.splits.items()):
        wanted = {name: parse_measure(expression) for name, expression in sorted(expressions.items())}
        chosen = topics(collection, split, protocol.queries, protocol.sample)
        if split in protocol.judged_by_answers:
            grades = _grades_by_answers(run, collection, chosen, wanted.values())
        else:
            judged = collection.qrels(split)
            if missing := [query for query in chosen if query not in judged]:
                raise EncoreError(
                    f"split {split!r}: query {missing[0]} is asked and not judged; please report it as a bug"
                )
            grades = {query: judged[query] for query in chosen}
        if protocol.scored_by_passages:
            grades = {query: {whole_id(name): grade for name, grade in its.items()} for query, its in grades.items()}
        overlap = overlap_with_training(collection, split)
        for name, scored in scored_queries(run, grades, wanted, clusters, overlap).items():
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


def _without_own(run: RunMatrices) -> RunMatrices:
    """A run in which no query has the document of its own id for an answer; queries left with none are absent."""
    own = run.documents.rows(run.queries)[:, None]
    return run.without((run.rows == own) & (own >= 0))


def scored_queries(
    run: RunMatrices,
    grades: Grades,
    wanted: Mapping[str, Measure],
    clusters: Mapping[str, str],
    overlap: Overlap = NO_OVERLAP,
) -> dict[str, Scored]:
    """Each measure, by its name, of every query of ``grades``."""
    queries, hits = list(grades), Hits.of(run, grades)
    usual, (worst, best) = hits.usual(), hits.extremes()
    scored = {}
    for name, measure in wanted.items():
        values, low, high = (measures.values(measure, ranks) for ranks in (usual, worst, best))
        scored[name] = Scored(
            queries=queries,
            clusters=[clusters.get(query, query) for query in queries],
            values=values,
            low=np.minimum(low, values),  # exactly the value where no order of ties can change it
            high=np.maximum(high, values),
            answered=hits.places >= 0,
            shared=_shared(queries, overlap, measure),
        )
    return scored


def _grades_by_answers(run: Run, collection: Collection, questions: Sequence[str], wanted: Iterable[Measure]) -> Grades:
    """1 for a retrieved passage whose text has an answer, 0 for any other that the measures may look at.

    Nobody judged the passages of such a split: DPR's top-k accuracy is Success@k on these grades. Every question of the
    split counts, whether or not anything was retrieved for it (Karpukhin et al. 2020, section 4).
    """
    depths = [measure.cutoff for measure in wanted]
    deepest = max((depth for depth in depths if depth is not None), default=None) if all(depths) else None
    looked_at = {query: _head(run[query], deepest) if query in run else [] for query in questions}
    right = answer_matching.answering(looked_at, collection)
    return {query: {each: int(each in right[query]) for each in found} for query, found in looked_at.items()}


def _head(ranking: Ranking, depth: int | None) -> list[str]:
    """The documents down to a rank, and those behind it of the same score, which another order could bring forward."""
    if depth is None or depth >= len(ranking):
        return ranking.documents
    end = depth
    while end < len(ranking) and ranking.scores[end] == ranking.scores[depth - 1]:
        end += 1
    return ranking.documents[:end]


def _shared(queries: list[str], overlap: Overlap, measure: Measure) -> NDArray[np.int8]:
    """What each query shares with training, where documents of a grade that the measure calls relevant count."""
    relevant = overlap.relevant(measure.rel)
    found = [RELEVANT * (query in relevant) + TEXT * (query in overlap.texts) for query in queries]
    return np.array(found, dtype=np.int8)

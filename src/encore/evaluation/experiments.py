"""Runs of anybody in memory: judged by the two evaluators, and compared with a baseline by the tests of tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from encore.config.datasets import parse_measure
from encore.data.rankings import RunMatrices
from encore.errors import EncoreError
from encore.evaluation.check_from_files import check_in_memory
from encore.evaluation.families import OPEN, UNTESTED, PairedDifference
from encore.evaluation.families import compare as tested
from encore.evaluation.judging import scored_queries
from encore.evaluation.ranks import Grades
from encore.evaluation.scores import Scored
from encore.evaluation.significance import can_be_tested

ABOVE, BELOW = "above", "below"


@dataclass(frozen=True)
class Experiment:
    """Every measure of every judged query of some runs, by run and measure, and each run's test against a baseline."""

    scores: Mapping[tuple[str, str], Scored]
    tests: Mapping[tuple[str, str], PairedDifference]

    def verdict(self, run: str, measure: str) -> str:
        """What the corrected test says of a run and the baseline."""
        if (run, measure) not in self.tests:
            return UNTESTED
        return {1: ABOVE, -1: BELOW, 0: OPEN}[self.tests[run, measure].sign()]


def evaluated(
    run: RunMatrices, grades: Grades, measures: Sequence[str], clusters: Mapping[str, str], called: str = "the run"
) -> dict[str, Scored]:
    """Each measure of every judged query, checked by ir-measures.

    Args:
        measures: in ir-measures' spelling.
        clusters: the unit that a query's errors are clustered by, where it is not the query.
        called: what messages call the run.
    """
    if not grades:
        raise EncoreError("the judgments are empty; give some")
    if not any(query in run for query in grades):
        theirs, ours = ", ".join(run.queries[:2]) or "none", ", ".join(list(grades)[:2])
        raise EncoreError(f"{called} answers no judged query: it has {theirs}, the judgments {ours}")
    named = {name: parse_measure(name) for name in measures}
    found = scored_queries(run, grades, named, clusters)
    check_in_memory(grades, run, named, found)
    return found


def experiment(
    runs: Mapping[str, RunMatrices],
    grades: Grades,
    measures: Sequence[str],
    clusters: Mapping[str, str],
    baseline: str,
) -> Experiment:
    """Every run's measures, and the differences to the baseline: Holm-corrected over the other runs, for each measure.

    The test is that of tables, over queries and with one seed (``significance.py``).
    """
    if baseline not in runs:
        raise EncoreError(f"the baseline {baseline!r} is none of the runs: {', '.join(runs)}")
    scores = {
        (name, measure): scored
        for name, run in runs.items()
        for measure, scored in evaluated(run, grades, measures, clusters, name).items()
    }
    others = [name for name in runs if name != baseline]
    own = next(iter(scores.values())).clusters
    if not can_be_tested(own):
        return Experiment(scores, {})
    apart = {
        ((name, measure), baseline): (scores[name, measure].values - scores[baseline, measure].values)[:, None]
        for name in others
        for measure in measures
    }
    families = [([(name, measure) for name in others], [baseline]) for measure in measures]
    tests = tested(apart, {pair: own for pair, _ in apart}, families)
    return Experiment(scores, {pair: against[baseline] for pair, against in tests.items()})

"""Runs of anybody in memory: judged by the two evaluators, and compared with a baseline by the tests of tables."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from encore.config.datasets import parse_measure
from encore.data.rankings import RunMatrices
from encore.errors import EncoreError
from encore.evaluation.check_from_files import check_in_memory
from encore.evaluation.families import OPEN, UNTESTED, PairedDifference
from encore.evaluation.families import compare as tested
from encore.evaluation.judging import scored_queries
from encore.evaluation.ranks import Grades
from encore.evaluation.scores import Floats, Scored, paired_seeds
from encore.evaluation.significance import can_be_tested

ABOVE, BELOW = "above", "below"


@dataclass(frozen=True)
class Experiment:
    """Every measure of every judged query of some systems, and each one's test against a baseline.

    ``scores`` has a ``Scored`` for each seed by system and measure, ``differences`` [queries, seeds] to the baseline.
    """

    scores: Mapping[tuple[str, str], Sequence[Scored]]
    differences: Mapping[tuple[str, str], Floats]
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
    runs: Mapping[str, Sequence[RunMatrices]],
    grades: Grades,
    measures: Sequence[str],
    clusters: Mapping[str, str],
    baseline: str,
) -> Experiment:
    """Every system's measures, and the differences to the baseline: Holm-corrected over the others, for each measure.

    The test is that of tables, over queries and seeds (``significance.py``).

    Args:
        runs: of each system one, or one for each seed.
    """
    if baseline not in runs:
        raise EncoreError(f"the baseline {baseline!r} is none of the runs: {', '.join(runs)}")
    scores: dict[tuple[str, str], list[Scored]] = {}
    for name, seeds in runs.items():
        for run in seeds:
            for measure, scored in evaluated(run, grades, measures, clusters, name).items():
                scores.setdefault((name, measure), []).append(scored)
    others, apart = [name for name in runs if name != baseline], {}
    for name, measure in itertools.product(others, measures):
        own, theirs = scores[name, measure], scores[baseline, measure]
        pairs = pairs_of(runs, name, baseline)
        apart[name, measure] = np.stack([own[a].values - theirs[b].values for a, b in pairs], axis=1)
    of_queries = next(iter(scores.values()))[0].clusters
    if not can_be_tested(of_queries):
        return Experiment(scores, apart, {})
    families = [([(name, measure) for name in others], [baseline]) for measure in measures]
    against = {(pair, baseline): values for pair, values in apart.items()}
    tests = tested(against, dict.fromkeys(apart, of_queries), families)
    return Experiment(scores, apart, {pair: found[baseline] for pair, found in tests.items()})


def pairs_of(runs: Mapping[str, Sequence[RunMatrices]], name: str, baseline: str) -> list[tuple[int, int]]:
    """Which runs of a system and the baseline are compared: of equal seeds, one alone with each of the other's."""
    counts = [len(runs[each]) for each in (name, baseline)]
    if counts[0] != counts[1] and 1 not in counts:
        raise EncoreError(f"{name} has {counts[0]} seeds, and {baseline} {counts[1]}; give both the same")
    ours, theirs = ([None] if count == 1 else list(range(count)) for count in counts)
    return paired_seeds(ours, theirs)

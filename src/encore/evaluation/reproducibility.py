"""How close a run is to another one that it should reproduce: the measures of ``repro_eval``.

Breuer, Ferro, Fuhr, Maistro, Sakai, Schaer & Soboroff, "How to measure the reproducibility of system-oriented IR
experiments" (SIGIR 2020): Kendall's tau over the union of two rankings, rank-biased overlap, the root mean square error
of a measure over queries, and, where each run has a baseline, the effect ratio and the difference of relative
improvements. The package's two-tailed paired t-test is next to them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from encore.config.datasets import Measure
from encore.data.rankings import Ranking, Run
from encore.errors import EncoreError
from encore.evaluation.measures import measure_values
from encore.evaluation.ranks import Grades

Scores = dict[str, dict[str, float]]  # by query, then by measure, as the package has them
PERSISTENCE = 0.95  # of rank-biased overlap, the package's own
DEPTH = 100  # ranks whose order is compared; the package's time for a query grows with their square


@dataclass(frozen=True)
class RankAgreement:
    """How alike two rankings are, a mean over the queries that both answer; ``tau`` is NaN where none has two ranks."""

    queries: int
    tau: float
    overlap: float


@dataclass(frozen=True)
class Closeness:
    """A measure of both runs over all judged queries; the last two are there only with baselines.

    ``effect_ratio``: our mean gain over the baseline by theirs; 1 where they are the same. ``relative``: their relative
    improvement less ours; 0 where they are the same.
    """

    measure: str
    ours: float
    theirs: float
    error: float
    p: float
    effect_ratio: float | None = None
    relative: float | None = None


def order(ours: Run, theirs: Run, depth: int) -> RankAgreement:
    """Kendall's tau over unions and rank-biased overlap, of ``depth`` ranks (Breuer et al. 2020; Webber et al. 2010).

    The package takes rankings of one length (a shorter one would overlap less with itself), so each query's are cut to
    the shorter one.
    """
    from repro_eval.measure.document_order import KTU, RBO

    both = [query for query in theirs if query in ours]
    if not both:
        raise EncoreError("the two runs answer no query in common; name runs over the same queries")
    if all(set(ours[query].documents).isdisjoint(theirs[query].documents) for query in both):
        raise EncoreError("the two runs rank no document in common; name runs over the same passages, by the same ids")
    taus, overlaps = [], []
    for query in both:
        count = min(depth, len(ours[query]), len(theirs[query]))
        left, right = ({query: _descending(run[query], count)} for run in (theirs, ours))
        overlaps.append(float(RBO(left, right, p=PERSISTENCE, depth=count, pbar=False, per_topic=False)))
        if count > 1:
            taus.append(float(KTU(left, right, trim_thresh=count)))
    tau = math.fsum(taus) / len(taus) if taus else math.nan
    return RankAgreement(len(both), tau, math.fsum(overlaps) / len(overlaps))


def closeness(
    ours: Run, theirs: Run, grades: Grades, measures: Sequence[Measure], baselines: tuple[Run, Run] | None = None
) -> list[Closeness]:
    """Each measure's difference, over all judged queries; one that a run does not answer counts as 0.

    Args:
        baselines: of ours and of theirs.
    """
    if len(grades) < 2:
        raise EncoreError("the judgments are about fewer than 2 queries, too few to compare runs on; name others")
    own, other = (_scores(run, grades, measures) for run in (ours, theirs))
    if baselines is None:
        return compared(own, other)
    bases = _scores(baselines[0], grades, measures), _scores(baselines[1], grades, measures)
    for name in map(str, measures):
        if not gains(other, bases, name):
            raise EncoreError(f"{name}: the reference gains nothing over its baseline, or a baseline is 0; name others")
    return compared(own, other, bases)


def compared(own: Scores, other: Scores, baselines: tuple[Scores, Scores] | None = None) -> list[Closeness]:
    """How close two systems' scores are on each measure, over the same queries, two at least (Breuer et al. 2020).

    Args:
        baselines: of ours and of theirs, with which ``gains`` holds for each measure.
    """
    from repro_eval.measure.effectiveness import RMSE
    from repro_eval.measure.overall_effects import DRI, ER, mean_score
    from repro_eval.measure.statistics import ttest

    errors, tests, means = RMSE(other, own), ttest(other, own), [mean_score(scores) for scores in (own, other)]
    ratios: dict[str, float] = {}
    relative: dict[str, float] = {}
    if baselines is not None:
        own_base, other_base = baselines
        ratios, relative = (measure(other, other_base, own, own_base) for measure in (ER, DRI))
    return [
        Closeness(
            measure=name,
            ours=float(means[0][name]),
            theirs=float(means[1][name]),
            error=float(errors[name]),
            p=float(tests[name]),
            effect_ratio=ratios.get(name),
            relative=relative.get(name),
        )
        for name in next(iter(own.values()))
    ]


def gains(theirs: Scores, baselines: tuple[Scores, Scores], measure: str) -> bool:
    """True if effect ratio and relative improvements are defined: neither divides by 0 (Breuer et al. 2020)."""
    sums = [math.fsum(scores[query][measure] for query in scores) for scores in (theirs, *baselines)]
    return sums[0] != sums[2] and 0.0 not in sums[1:]


def _scores(run: Run, grades: Grades, measures: Sequence[Measure]) -> Scores:
    found = measure_values(measures, grades, run)
    return {query: {str(measure): found[measure][query] for measure in measures} for query in sorted(grades)}


def _descending(ranking: Ranking, count: int) -> dict[str, float]:
    """Its documents with scores that keep their order, for ties in it are settled."""
    return {document: -float(place) for place, document in enumerate(ranking.documents[:count])}

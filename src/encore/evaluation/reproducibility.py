"""How alike two runs order documents, by the package ``repro_eval``.

Breuer, Ferro, Fuhr, Maistro, Sakai, Schaer & Soboroff, "How to measure the reproducibility of system-oriented IR
experiments" (SIGIR 2020): Kendall's tau over the union of two rankings, and rank-biased overlap.
"""

import math
from dataclasses import dataclass

from encore.data.rankings import Ranking, Run
from encore.errors import EncoreError

PERSISTENCE = 0.95  # of rank-biased overlap, the package's own


@dataclass(frozen=True)
class RankAgreement:
    """How alike two rankings are, a mean over the queries that both answer; ``tau`` is NaN where none has two ranks."""

    queries: int
    tau: float
    overlap: float


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


def _descending(ranking: Ranking, count: int) -> dict[str, float]:
    """Its documents with scores that keep their order, for ties in it are settled."""
    return {document: -float(place) for place, document in enumerate(ranking.documents[:count])}

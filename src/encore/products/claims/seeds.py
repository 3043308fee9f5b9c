"""How many seeds a claim needs, before any run: if differences are as printed, and systems vary as assumed.

The variance over queries is that of ``power.py``, a part of which changes with the seed. How far a system deviates from
seed to seed no paper prints; ``papers/encore/spread.yaml`` has what is assumed. A comparison is expected to be shown
with 80 % power where its difference exceeds the test's critical distance by 0.84 standard errors (Bloom, Evaluation
Review 19, 1995).
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

from encore.evaluation.significance import SIGNIFICANT, Component, critical_distance
from encore.plan.plan import Plan
from encore.products.claims.contrasts import Contrast, copied_from
from encore.products.claims.entries import Claim, number_tests, read_claims
from encore.products.claims.power import POWER, Power
from encore.products.claims.printed import printed_difference
from encore.products.claims.printed_claims import printed_values
from encore.products.tables.comparisons import ENOUGH_SEEDS
from encore.products.tables.reported import PAPERS

TRIED = (ENOUGH_SEEDS, 6, 7, 8, 10, 12, 15, 20, 30, 50)
NEVER = math.inf


@dataclass(frozen=True)
class ExpectedDifference:
    """A comparison as the printed numbers lead to expect it, in the measure's unit."""

    mean: float
    of_queries: float  # variance with one seed
    queries: int
    by_seed: float  # share of it that changes with the seed
    trained: float  # variance of the systems trained here with one seed
    copied: float  # variance of the printed trainings

    def shown_with(self, seeds: int, level: float) -> bool:
        """Whether a two-tailed test at ``level`` finds it with 80 % power."""
        changing = self.of_queries * self.by_seed
        of_queries = self.of_queries - changing + changing / seeds
        of_seeds = (self.trained + changing) / seeds + self.copied
        components = (Component(of_queries, self.queries - 1), Component(of_seeds, seeds - 1))
        error = (of_queries + of_seeds - changing / seeds) ** 0.5
        return self.mean >= critical_distance(level, components) + NormalDist().inv_cdf(POWER) * error

    def ratio(self) -> float:
        """The mean in standard errors with ten seeds, by which comparisons are ranked."""
        return self.mean / (self.of_queries + self.trained / 10 + self.copied) ** 0.5


def seeds_needed(claim: Claim, power: Power) -> float | None:
    """The fewest seeds of ``TRIED`` that are expected to show every test; ``NEVER`` where 50 are too few.

    None where that is unknown: a test is about no counted queries, or the printed numbers are against it.
    """
    found = []
    for test in number_tests(claim.tests):
        if not test.by_comparison or not test.table:
            return None
        every = test.contrasts(power.tables)
        most = test.needed(len(every))
        known = filter(None, (_expected(contrast, power) for contrast in every))
        ranked = sorted(known, key=ExpectedDifference.ratio, reverse=True)
        if len(ranked) < most or ranked[most - 1].mean <= 0:
            return None
        level = (2 if every[0].equivalence else 1) * SIGNIFICANT / (len(every) - most + 1)
        place = bisect_left(TRIED, True, key=partial(ranked[most - 1].shown_with, level=level))
        found.append(TRIED[place] if place < len(TRIED) else NEVER)
    return max(found, default=None)


def _expected(contrast: Contrast, power: Power) -> ExpectedDifference | None:
    mean, of_queries = printed_difference(contrast, power.values), power.variance(contrast)
    counts = [power.queries(run) for run in power.runs(contrast)]
    if contrast.printed or mean is None or of_queries is None or None in counts:
        return None
    trained, copied = (
        math.fsum(
            (weight * power.spread.of_seeds) ** 2
            for address, weight in contrast.terms
            if bool(copied_from(address, power.tables)) == is_copied
        )
        for is_copied in (False, True)
    )
    queries = min(count for count in counts if count is not None)
    return ExpectedDifference(mean, of_queries, queries, power.spread.by_seed, trained, copied)


def seeds_text(plan: Plan) -> str:
    """Which claims a run's seeds can show, and how many seeds the others need."""
    seeds = len(plan.config.seeds)
    few = f"\n  This run has {seeds}; a verdict needs {ENOUGH_SEEDS} or more." if seeds < ENOUGH_SEEDS else ""
    if plan.config.proxy_data:
        return f"Seeds that claims need: not known on proxy data, where no printed difference is expected.{few}"
    tables = plan.catalogue.tables
    power = Power(PAPERS, tables, printed_values(PAPERS, tables))
    need = {name: seeds_needed(claim, power) for name, (_, claim) in read_claims(PAPERS).items()}
    known = {name: count for name, count in need.items() if count is not None}
    lines = [f"Seeds that claims need (80 % power, if differences are as printed; this run has {seeds}):"]
    for count in sorted(set(known.values())):
        own = [name for name, each in known.items() if each == count]
        head = f"more than {TRIED[-1]}" if count == NEVER else f"{count}{'' if count > seeds else ', as here'}"
        lines.append(f"  {head}: {len(own)} ({', '.join(own)})")
    lines.append(f"  not known: {len(need) - len(known)}, about no counted queries, or against the printed numbers")
    return "\n".join(lines) + few

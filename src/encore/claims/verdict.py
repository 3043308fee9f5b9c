"""From estimates to a verdict: what the evidence says of a test, and what its tests together say of a claim.

A test of n inequalities of which k must hold is shown when the partial-conjunction p value (n - k + 1) p_(k) of the
one-sided tests is small enough (Benjamini & Heller, Biometrics 64, 2008): with k = n that is the largest p, the
intersection-union test. It is refuted when so many inequalities are shown to go the other way that k cannot hold, by
the same rule; with k = n that is n times the smallest p (Bonferroni). Each inequality is tested at half of 5 %, as a
two-tailed test would; equivalences at 5 % on either side, so that the 90 % interval must lie inside the margin (two
one-sided tests, TOST: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). The intersection-union
test is Berger's (Technometrics 24, 1982).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from encore.claims.alike import chance_of_tau, tau
from encore.evaluation.significance import SIGNIFICANT, Difference


class Evidence(Enum):
    """What estimates say of a test."""

    SHOWN = "shown"
    DIRECTION = "same direction"
    OPEN = "not distinguishable"
    REFUTED = "refuted"


@dataclass(frozen=True)
class Estimate:
    """A contrast minus its bound: above 0 where its inequality holds.

    ``seeds`` is None where nothing in it has chance (BM25).
    """

    difference: Difference
    equivalence: bool = False
    seeds: int | None = None

    @property
    def mean(self) -> float:
        """The estimated difference, in the measure's own unit."""
        return self.difference.mean

    @property
    def p_above(self) -> float:
        """One-sided p value of the null hypothesis that the inequality does not hold, for a level of 2.5 %.

        Half the two-sided p of ``difference``; an equivalence is tested at 5 %, so its p is halved to fit this level.
        """
        half = self.difference.p / 2
        p = half if self.mean > 0 else 1 - half
        return p / 2 if self.equivalence else p

    @property
    def p_below(self) -> float:
        """One-sided p value of the null hypothesis that the inequality holds, for a level of 2.5 %."""
        half = self.difference.p / 2
        return half if self.mean < 0 else 1 - half


def of_inequalities(estimates: Sequence[Estimate], needed: int, tests: int = 1) -> Evidence:
    """The evidence that at least ``needed`` of some inequalities hold (partial conjunction: Benjamini and Heller 2008).

    Args:
        estimates: one per inequality, at least one.
        needed: how many must hold, from 1 to all.
        tests: how many tests make the claim; a refutation is Bonferroni-corrected for them.
    """
    count = len(estimates)
    level = SIGNIFICANT / 2
    above, below = (sorted(getattr(one, name) for one in estimates) for name in ("p_above", "p_below"))
    if (count - needed + 1) * above[needed - 1] <= level:
        return Evidence.SHOWN
    if needed * below[count - needed] <= level / tests:
        return Evidence.REFUTED
    return Evidence.DIRECTION if sum(one.mean > 0 for one in estimates) >= needed else Evidence.OPEN


def of_no_winner(estimates: Sequence[Estimate], tests: int = 1) -> Evidence:
    """The evidence that a row is neither above another under every column nor below it under every column.

    Refuted where one direction is shown under every column (an intersection-union test in either direction, hence
    2 ``tests``); shown where some column is above and some below, each Bonferroni-corrected over columns.

    Args:
        estimates: the row's difference to the other, one per column.
        tests: how many tests make the claim.
    """
    level, count = SIGNIFICANT / 2, len(estimates)
    worst = min(max(one.p_above for one in estimates), max(one.p_below for one in estimates))
    best = max(min(one.p_above for one in estimates), min(one.p_below for one in estimates))
    if worst <= level / (2 * tests):
        return Evidence.REFUTED
    if count * best <= level:
        return Evidence.SHOWN
    signs = {one.mean > 0 for one in estimates}
    return Evidence.DIRECTION if len(signs) == 2 else Evidence.OPEN


def of_orders(columns: Sequence[tuple[Sequence[float], Sequence[float]]], tests: int = 1) -> Evidence:
    """The evidence that two settings order systems alike, by the exact test of Kendall's tau (``alike.py``).

    Args:
        columns: for each column the values of the systems under either setting, in the same order of systems.
        tests: how many tests make the claim; a refutation is Bonferroni-corrected for them and the columns.
    """
    taus = [tau(first, second) for first, second in columns]
    systems = len(columns[0][0])
    if all(chance_of_tau(systems, found) <= SIGNIFICANT / 2 for found in taus):
        return Evidence.SHOWN
    if any(chance_of_tau(systems, -found) <= SIGNIFICANT / (2 * tests * len(taus)) for found in taus):
        return Evidence.REFUTED
    return Evidence.DIRECTION if all(found > 0 for found in taus) else Evidence.OPEN


REPRODUCED, CONTRADICTED = "reproduced", "contradicted"
HOLDS_HERE, FAILS_HERE = "holds here", "fails here"
PREMISE = "premise not met"


def claim_verdict(evidence: Sequence[Evidence], *, proxy_data: bool) -> str:
    """The verdict on a claim from the evidence on each of its tests.

    Data that stand in for the papers' never confirm or contradict a paper, and the words say so.
    """
    if Evidence.REFUTED in evidence:
        return FAILS_HERE if proxy_data else CONTRADICTED
    if all(one is Evidence.SHOWN for one in evidence):
        return HOLDS_HERE if proxy_data else REPRODUCED
    if Evidence.OPEN in evidence:
        return Evidence.OPEN.value
    return Evidence.DIRECTION.value

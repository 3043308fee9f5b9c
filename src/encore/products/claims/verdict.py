"""Decide a verdict from estimates: what the evidence says of a test, and what its tests together say of a claim.

A test of n inequalities of which k must hold is shown when the partial-conjunction p value (n - k + 1) p_(k) of the
one-sided tests is small enough (Benjamini & Heller, Biometrics 64, 2008): with k = n that is the largest p, the
intersection-union test. It is refuted when so many inequalities are shown to go the other way that k cannot hold, by
the same rule; with k = n that is n times the smallest p (Bonferroni). Each inequality is tested at half of 5 %, as a
two-tailed test would; equivalences at 5 % on either side, so that the 90 % interval must be inside the margin (two
one-sided tests, TOST: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987). The intersection-union
test is Berger's (Technometrics 24, 1982).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from encore.evaluation.significance import SIGNIFICANT, Difference
from encore.products.claims.contrasts import DUST


class Evidence(Enum):
    """What estimates say of a test."""

    SHOWN = "shown"
    DIRECTION = "same direction"
    OPEN = "not distinguishable"
    OPPOSITE = "opposite direction"
    REFUTED = "refuted"


@dataclass(frozen=True)
class Estimate:
    """A contrast minus its bound: above 0 where its inequality holds.

    ``or_equal``: the inequality also holds where both sides are equal. ``seeds`` is None where nothing in it has chance
    (BM25).
    """

    difference: Difference
    equivalence: bool = False
    seeds: int | None = None
    or_equal: bool = False

    @property
    def mean(self) -> float:
        """The estimated difference, in the measure's own unit."""
        return self.difference.mean

    @property
    def holds(self) -> bool:
        """Whether the inequality holds of the estimates."""
        return self.mean > 0 or (self.or_equal and abs(self.mean) < DUST)

    @property
    def certain(self) -> bool:
        """Whether there is no chance in it and no error is known: a cost or a size, which is measured once."""
        return self.seeds is None and self.difference.error == np.inf

    @property
    def p_above(self) -> float:
        """One-sided p value of the null hypothesis that the inequality does not hold, for a level of 2.5 %.

        Half the two-sided p of ``difference``; an equivalence is tested at 5 %, so its p is halved to fit this level.
        Without an error there is no doubt.
        """
        if self.difference.error == 0:
            return 0.0 if self.holds else 1.0
        return self.difference.p_above / 2 if self.equivalence else self.difference.p_above

    @property
    def p_below(self) -> float:
        """One-sided p value of the null hypothesis that the inequality holds, for a level of 2.5 %."""
        if self.difference.error == 0:
            return 0.0 if self.mean < 0 and not self.holds else 1.0
        return replace(self.difference, mean=-self.mean).p_above


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
    if sum(one.holds for one in estimates) >= needed:
        return Evidence.DIRECTION
    return Evidence.OPPOSITE if all(one.certain for one in estimates) else Evidence.OPEN


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


def of_orders(columns: Sequence[Sequence[Sequence[Estimate]]], tests: int = 1, tau: float = 0.0) -> Evidence:
    """The evidence that two settings order systems alike under every column: Kendall's tau above a bound.

    Tau is above t where more than (1 + t) / 2 of the pairs of systems agree. A pair agrees where its difference is
    shown to go the same way under both settings, an intersection-union test in either direction, which errors that the
    settings share (of the same models and queries) do not mislead. That so many agree is a partial conjunction of
    pairs, and so is that too many disagree.

    Args:
        columns: for each column and either setting the differences of all pairs, in the same order of pairs.
        tests: how many tests make the claim; a refutation is Bonferroni-corrected for them and the columns.
        tau: the bound, from 0 to below 1.
    """
    level, found = SIGNIFICANT / 2, []
    for first, second in columns:
        pairs = list(zip(first, second, strict=True))
        most = int(len(pairs) * (1 + tau) / 2) + 1
        agree = sorted(min(max(x.p_above, y.p_above), max(x.p_below, y.p_below)) for x, y in pairs)
        oppose = sorted(min(max(x.p_above, y.p_below), max(x.p_below, y.p_above)) for x, y in pairs)
        sign = sum(np.sign(x.mean) * np.sign(y.mean) for x, y in pairs)
        rest = len(pairs) - most + 1  # as many that disagree leave too few to agree
        found.append((rest * agree[most - 1], most * oppose[rest - 1], sign > tau * len(pairs)))
    if all(agree <= level for agree, _, _ in found):
        return Evidence.SHOWN
    if any(oppose <= level / (tests * len(found)) for _, oppose, _ in found):
        return Evidence.REFUTED
    return Evidence.DIRECTION if all(alike for _, _, alike in found) else Evidence.OPEN


REPRODUCED, CONTRADICTED = "reproduced", "contradicted"
HOLDS_HERE, FAILS_HERE = "holds here", "fails here"
PREMISE = "premise not met"
AGREE = (REPRODUCED, HOLDS_HERE, Evidence.DIRECTION.value)  # the estimates are on the claim's side
DISAGREE = (CONTRADICTED, FAILS_HERE, Evidence.OPPOSITE.value, Evidence.OPEN.value)


def claim_verdict(evidence: Sequence[Evidence], *, proxy_data: bool) -> str:
    """The verdict on a claim from the evidence on each of its tests.

    Proxy data never confirm or contradict a paper, and the words say so.
    """
    if Evidence.REFUTED in evidence:
        return FAILS_HERE if proxy_data else CONTRADICTED
    if all(one is Evidence.SHOWN for one in evidence):
        return HOLDS_HERE if proxy_data else REPRODUCED
    for doubtful in (Evidence.OPPOSITE, Evidence.OPEN):
        if doubtful in evidence:
            return doubtful.value
    return Evidence.DIRECTION.value

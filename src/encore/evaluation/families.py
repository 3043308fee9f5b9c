"""Differences of systems to the same comparators: each tested, its p corrected over a family by Holm's procedure."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from scipy.optimize import brentq

from encore.evaluation.significance import POWER, SIGNIFICANT, Difference, Floats, clustered, holm, paired_t, randomised

K = TypeVar("K", bound=Hashable)  # a system under a measure


@dataclass(frozen=True)
class PairedDifference:
    """A system against a comparator, on the same queries.

    ``p_one_seed`` is the papers' own paired t-test on the first seed. ``p_holm`` is None outside the families.
    ``p_joint`` is set where the verdict is about this comparator: that of a gain over all such comparators, corrected
    over the family. ``family``: how many systems it has.
    """

    difference: Difference
    p_one_seed: float
    p_randomised: float
    p_holm: float | None = None
    p_joint: float | None = None
    family: int = 1

    def sign(self) -> int:
        """1 for a significant gain, -1 for a significant loss, 0 where the corrected test is not significant at 5 %."""
        if self.p_holm is None or self.p_holm > SIGNIFICANT:
            return 0
        return 1 if self.difference.mean > 0 else -1


def compare(
    differences: Mapping[tuple[K, str], Floats],
    clusters: Mapping[K, Sequence[str]],
    families: Iterable[tuple[Sequence[K], Sequence[str]]],
) -> dict[K, dict[str, PairedDifference]]:
    """Test each difference of a system to a comparator, and correct the p values of each family.

    Args:
        differences: [queries, seeds], by system and comparator.
        clusters: of each system's queries [queries].
        families: systems, and the comparators over all of which a gain has to hold.
    """
    compared: dict[K, dict[str, PairedDifference]] = {system: {} for system in clusters}
    by_clusters: dict[tuple[str, ...], list[tuple[K, str]]] = {}
    for test in differences:
        by_clusters.setdefault(tuple(clusters[test[0]]), []).append(test)
    for alike, tests in by_clusters.items():
        randomly = randomised([differences[test] for test in tests], alike)
        for (system, other), p_randomised in zip(tests, randomly, strict=True):
            own = differences[system, other]
            compared[system][other] = PairedDifference(clustered(own, alike), paired_t(own[:, 0]), p_randomised)
    for family, deciding in families:
        correct(compared, family, deciding)
    return compared


def correct(compared: dict[K, dict[str, PairedDifference]], family: Sequence[K], deciding: Sequence[str]) -> None:
    """Correct a family's p values in place: against each comparator, and for a gain over all of ``deciding``.

    Both by Holm's step-down procedure (Scandinavian Journal of Statistics 6, 1979), over the systems of the family. A
    gain over several is an intersection-union test (Berger, Technometrics 24, 1982): its p is the largest.
    """
    for other in dict.fromkeys(other for system in family for other in compared[system]):
        tests = [system for system in family if other in compared[system]]
        corrected = holm([compared[system][other].difference.p for system in tests])
        for system, p_holm in zip(tests, corrected, strict=True):
            compared[system][other] = replace(compared[system][other], p_holm=p_holm, family=len(tests))
    pairs = {system: [name for name in deciding if name in compared[system]] for system in family}
    joint = holm(
        [max((_gain(compared[system][name]) for name in names), default=1.0) for system, names in pairs.items()]
    )
    for (system, names), p_joint in zip(pairs.items(), joint, strict=True):
        for name in names:
            compared[system][name] = replace(compared[system][name], p_joint=p_joint)


def _gain(one: PairedDifference) -> float:
    """The two-tailed p of a gain; 1 for a loss."""
    return one.difference.p if one.difference.mean > 0 else 1.0


def detectable_gain(against: Sequence[PairedDifference]) -> float:
    """The smallest gain over all comparators that the joint test finds with 80 % power, in the measure's unit.

    At Holm's first level, 5 % over the size of the family. Every comparison is needed, so their powers are multiplied;
    since they share the system's scores, they are found together a little more often than that.
    """
    levels = [(one.difference, SIGNIFICANT / one.family) for one in against]
    least = max(difference.detectable(level) for difference, level in levels)
    if len(against) == 1 or least in (0, math.inf):
        return least

    def excess(gain: float) -> float:
        return math.prod(difference.power(gain, level) for difference, level in levels) - POWER

    return float(brentq(excess, 0, 3 * least, rtol=1e-6))

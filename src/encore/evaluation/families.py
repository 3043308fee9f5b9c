"""Differences of systems to the same comparators: each tested, its p corrected over a family by Holm's procedure."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from scipy.optimize import brentq

from encore.evaluation.significance import POWER, SIGNIFICANT, Difference, Floats, clustered, holm, paired_t, randomised

OPEN, UNTESTED = "not distinguishable", "not testable here"  # of verdicts
K = TypeVar("K", bound=Hashable)  # a system under a measure


@dataclass(frozen=True)
class PairedDifference:
    """A system against a comparator, on the same queries.

    ``p_one_seed`` is the papers' own paired t-test on the first seed. ``p_holm`` is None outside the families.
    ``p_joint`` is set where the verdict is about this comparator: that of a gain over all such comparators, corrected
    over the family. ``family``: how many systems it has. With a margin ``p_equivalent`` and ``p_jointly_equivalent``
    are the same of two one-sided tests that the difference is smaller.
    """

    difference: Difference
    p_one_seed: float
    p_randomised: float
    p_holm: float | None = None
    p_joint: float | None = None
    family: int = 1
    p_equivalent: float | None = None
    p_jointly_equivalent: float | None = None

    def sign(self) -> int:
        """1 for a significant gain, -1 for a significant loss, 0 where the corrected test is not significant at 5 %."""
        if self.p_holm is None or self.p_holm > SIGNIFICANT:
            return 0
        return 1 if self.difference.mean > 0 else -1


def compare(
    differences: Mapping[tuple[K, str], Floats],
    clusters: Mapping[K, Sequence[str]],
    families: Iterable[tuple[Sequence[K], Sequence[str]]],
    margin: float | None = None,
) -> dict[K, dict[str, PairedDifference]]:
    """Test each difference of a system to a comparator, and correct the p values of each family.

    Args:
        differences: [queries, seeds], by system and comparator.
        clusters: of each system's queries [queries].
        families: systems, and the comparators over all of which a gain has to hold.
        margin: what a smaller difference is equivalent within, in the measure's unit; None for no such tests.
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
        correct(compared, family, deciding, margin)
    return compared


def correct(
    compared: dict[K, dict[str, PairedDifference]],
    family: Sequence[K],
    deciding: Sequence[str],
    margin: float | None = None,
) -> None:
    """Correct a family's p values in place: against each comparator, and for all of ``deciding`` together.

    Both by Holm's step-down procedure (Scandinavian Journal of Statistics 6, 1979), over the systems of the family. A
    gain over several, or an equivalence to them, is an intersection-union test (Berger, Technometrics 24, 1982): its p
    is the largest. Gains and equivalences are corrected apart, since a system has not both: they take no level from
    each other (three-sided testing: Goeman, Solari & Stijnen, Statistics in Medicine 29, 2010).
    """
    _correct_by(lambda one: one.difference.p, "p_holm", compared, family)
    _correct_jointly(_gain, "p_joint", compared, family, deciding)
    if margin is not None:
        _correct_by(lambda one: one.difference.p_within(margin), "p_equivalent", compared, family)
        _correct_jointly(
            lambda one: one.difference.p_within(margin), "p_jointly_equivalent", compared, family, deciding
        )


def _correct_by(
    p: Callable[[PairedDifference], float],
    field: str,
    compared: dict[K, dict[str, PairedDifference]],
    family: Sequence[K],
) -> None:
    """Set a field of each comparison to its p, corrected over the systems with the same comparator."""
    for other in dict.fromkeys(other for system in family for other in compared[system]):
        tests = [system for system in family if other in compared[system]]
        corrected = holm([p(compared[system][other]) for system in tests])
        for system, value in zip(tests, corrected, strict=True):
            changes: dict[str, Any] = {field: value, "family": len(tests)}
            compared[system][other] = replace(compared[system][other], **changes)


def _correct_jointly(
    p: Callable[[PairedDifference], float],
    field: str,
    compared: dict[K, dict[str, PairedDifference]],
    family: Sequence[K],
    deciding: Sequence[str],
) -> None:
    """Set a field of the comparisons with ``deciding`` to their largest p, corrected over the systems."""
    pairs = {system: [name for name in deciding if name in compared[system]] for system in family}
    joint = holm([max((p(compared[system][name]) for name in names), default=1.0) for system, names in pairs.items()])
    for (system, names), value in zip(pairs.items(), joint, strict=True):
        changes: dict[str, Any] = {field: value}
        compared[system] |= {name: replace(compared[system][name], **changes) for name in names}


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

"""Differences of a table's rows to their comparators, with p values corrected by Holm's procedure (1979), and verdicts.

``none`` only fine-tunes; ``control`` spends the pre-training's operations on more fine-tuning. Beating the
first alone may be bought by computation, beating the second alone by a control that was trained too long.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from encore.evaluation.significance import POWER, SIGNIFICANT, Difference, clustered, holm, paired_t, randomised
from encore.products.tables.cell_scores import CellScores, differences
from encore.products.tables.grid import Column, Row
from encore.products.tables.layout import Layout

ENOUGH_SEEDS = 5
TOO_FEW, OPEN, UNTESTED = "too few seeds", "not distinguishable", "not testable here"
NOT_BEYOND = "not beyond its compute"

Address = tuple[str, str, str]  # setting, row id, column id
Test = tuple[Address, str]  # a cell, and the row id of a comparator
Comparisons = dict[Address, dict[str, "RowComparison"]]  # then by the comparator's row id


@dataclass(frozen=True)
class RowComparison:
    """A row against a comparator of its setting, under one column.

    ``p_one_seed`` is the papers' own paired t-test on the first seed. ``p_holm`` is None outside the families: for
    secondary measures, and for rows that are not objectives. ``p_joint`` is set where the verdict is about this
    comparator: that of a gain over all such comparators, corrected over the objectives. ``family``: their number.
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


def compare_rows(layout: Layout, found: dict[Address, CellScores]) -> Comparisons:
    """Compare each row that was run with the comparators of its setting, and correct the p values of each family.

    A family is the objectives of one setting under primary columns against one comparator, corrected by Holm's
    step-down procedure (Scandinavian Journal of Statistics 6, 1979). A gain over none and control alike is an
    intersection-union test (Berger, Technometrics 24, 1982): its p is the larger one, corrected over the same
    objectives. Rows are compared query by query and seed by seed, as ``evaluation/significance.py`` says.

    Raises:
        EncoreError: two rows share no seed, or were judged on different queries.
    """
    compared: Comparisons = {}
    apart: dict[Test, NDArray[np.float64]] = {}
    for column in layout.columns:
        for row in layout.rows:
            address = (row.setting, row.id, column.id)
            if address in found:
                compared[address] = {}
                apart |= {(address, other): each for other, each in _against(layout, found, row, column)}
    by_clusters: dict[tuple[str, ...], list[Test]] = {}
    for test in apart:
        by_clusters.setdefault(tuple(found[test[0]].clusters), []).append(test)
    for clusters, tests in by_clusters.items():
        randomly = randomised([apart[test] for test in tests], clusters)
        for (address, other), p_randomised in zip(tests, randomly, strict=True):
            each = apart[address, other]
            compared[address][other] = RowComparison(clustered(each, clusters), paired_t(each[:, 0]), p_randomised)
    for setting in layout.settings():
        own = [row for row in layout.rows if row.setting == setting]
        objectives = [row.id for row in own if row.role == "objective"]
        family = [(setting, row, column.id) for column in layout.columns if column.primary for row in objectives]
        deciding = [row.id for row in own if row.role in ("none", "control")]
        correct(compared, [address for address in family if address in compared], deciding)
    return compared


def _against(
    layout: Layout, found: dict[Address, CellScores], row: Row, column: Column
) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The comparators of a row under a column, with the row's differences to each [queries, seeds]."""
    ours = found[row.setting, row.id, column.id]
    for other in layout.comparators():
        theirs = found.get((row.setting, other, column.id))
        if other != row.id and theirs is not None:
            names = f"rows {row.id!r} and {other!r} of {row.setting!r}"
            yield other, differences(ours, theirs, names, row.cells[column.id])


def correct(compared: Comparisons, family: list[Address], deciding: list[str]) -> None:
    """Correct the p values of a family of objectives in place: each comparator's, and of a gain over all ``deciding``.

    Holm's step-down procedure, over the objectives.
    """
    for other in dict.fromkeys(other for address in family for other in compared[address]):
        tests = [address for address in family if other in compared[address]]
        corrected = holm([compared[address][other].difference.p for address in tests])
        for address, p_holm in zip(tests, corrected, strict=True):
            compared[address][other] = replace(compared[address][other], p_holm=p_holm, family=len(tests))
    pairs = {address: [name for name in deciding if name in compared[address]] for address in family}
    joint = holm(
        [max((_gain(compared[address][name]) for name in names), default=1.0) for address, names in pairs.items()]
    )
    for (address, names), p_joint in zip(pairs.items(), joint, strict=True):
        for name in names:
            compared[address][name] = replace(compared[address][name], p_joint=p_joint)


def _gain(one: RowComparison) -> float:
    """The two-tailed p of a gain; 1 for a loss."""
    return one.difference.p if one.difference.mean > 0 else 1.0


def objective_verdict(against: Sequence[RowComparison], *, proxy_data: bool) -> str:
    """The verdict on an objective from its comparisons with ``none`` and ``control`` (or none alone), Holm-corrected.

    On proxy data it says ``holds here`` or ``fails here``, never that a paper was confirmed. It holds when the
    intersection-union test over both is significant. It fails when either comparison goes significantly the other way,
    except for a gain over none that more fine-tuning exceeds: the paper's claim was over none, and held, so the verdict
    is ``not beyond its compute``. One gain alone stays ``not distinguishable``.
    """
    if min(one.difference.seeds for one in against) < ENOUGH_SEEDS:
        return TOO_FEW
    joint = against[0].p_joint
    if joint is not None and joint <= SIGNIFICANT:
        return "holds here" if proxy_data else "reproduced"
    none, *control = (one.sign() for one in against)
    if none > 0 and any(sign < 0 for sign in control):
        return NOT_BEYOND
    if any(sign < 0 for sign in (none, *control)):
        return "fails here" if proxy_data else "contradicted"
    return OPEN


def detectable_gain(against: Sequence[RowComparison]) -> float:
    """The smallest gain over all comparators alike that the verdict finds with 80 % power, in the measure's unit.

    At Holm's first level, 5 % over the size of the family. The verdict needs every comparison, so their powers are
    multiplied; since they share the objective's scores, they are found together a little more often than that.
    """
    levels = [(one.difference, SIGNIFICANT / one.family) for one in against]
    least = max(difference.detectable(level) for difference, level in levels)
    if len(against) == 1 or least in (0, math.inf):
        return least

    def excess(gain: float) -> float:
        return math.prod(difference.power(gain, level) for difference, level in levels) - POWER

    return float(brentq(excess, 0, 3 * least, rtol=1e-6))

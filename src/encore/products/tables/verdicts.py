"""The words for a claim that an objective helps: its gain must hold over no pre-training and over the control alike.

``none`` only fine-tunes; ``control`` spends the pre-training's operations on more fine-tuning. Beating the
first alone may be bought by computation, beating the second alone by a control that was trained too long.
"""

from collections.abc import Sequence

from encore.evaluation.significance import SIGNIFICANT
from encore.products.tables.comparisons import RowComparison

ENOUGH_SEEDS = 5
TOO_FEW, OPEN, UNTESTED = "too few seeds", "not distinguishable", "not testable here"
NOT_BEYOND = "not beyond its compute"


def objective_verdict(against: Sequence[RowComparison], *, proxy_data: bool) -> str:
    """The verdict on an objective from its comparisons with ``none`` and ``control`` (or none alone), Holm-corrected.

    On proxy data it says ``holds here`` or ``fails here``, never that a paper was confirmed. It holds when the
    intersection-union test over both is significant. It fails when either comparison goes significantly the other way,
    but for a gain over none that more fine-tuning exceeds: the paper's claim was over none, and held, so the word is
    ``not beyond its compute``. One gain alone stays ``not distinguishable``.
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
    """The minimum detectable gain over all comparators, in the measure's unit: 80 % power at Holm's first level.

    Holm's first level is 5 % over the size of the family. See ``evaluation.significance.Difference.detectable``.
    """
    return max(one.difference.detectable(SIGNIFICANT / one.family) for one in against)

"""Which rows of a table are compared with which, and the verdicts on its objectives.

``none`` only fine-tunes; ``control`` spends the pre-training's operations on more fine-tuning. Beating the
first alone may be bought by computation, beating the second alone by a control that was trained too long.
"""

from collections.abc import Sequence

from encore.evaluation.families import OPEN, PairedDifference, compare
from encore.evaluation.scores import Floats
from encore.evaluation.significance import SIGNIFICANT
from encore.products.tables.cell_scores import CellScores, differences
from encore.products.tables.layout import Layout

ENOUGH_SEEDS = 5
TOO_FEW, NOT_BEYOND = "too few seeds", "not beyond its compute"
EQUIVALENT = "equivalent within"

Address = tuple[str, str, str]  # setting, row id, column id


def compare_rows(layout: Layout, found: dict[Address, CellScores]) -> dict[Address, dict[str, PairedDifference]]:
    """Each row that was run against the comparators of its setting, by their row ids.

    Rows are compared query by query and seed by seed, unless nearly all queries are one cluster. A family is the
    objectives of one setting under primary columns; a verdict is on their gains over both none and control.
    """
    apart: dict[tuple[Address, str], Floats] = {}
    for row, column in ((row, column) for column in layout.columns for row in layout.rows):
        for other in layout.comparators():
            ours, theirs = (found.get((row.setting, name, column.id)) for name in (row.id, other))
            if ours and theirs and other != row.id and ours.can_be_tested:
                names = f"rows {row.id!r} and {other!r} of {row.setting!r}"
                apart[(row.setting, row.id, column.id), other] = differences(ours, theirs, names, row.cells[column.id])
    families = []
    for setting in layout.settings():
        own = [row for row in layout.rows if row.setting == setting]
        objectives = [row.id for row in own if row.role == "objective"]
        family = [(setting, row, column.id) for column in layout.columns if column.primary for row in objectives]
        deciding = [row.id for row in own if row.role in ("none", "control")]
        families.append(([address for address in family if address in found], deciding))
    return compare(apart, {address: one.clusters for address, one in found.items()}, families, layout.margin)


def objective_verdict(against: Sequence[PairedDifference], *, proxy_data: bool, margin: float | None = None) -> str:
    """The verdict on an objective from its comparisons with ``none`` and ``control`` (or none alone), Holm-corrected.

    On proxy data it says ``holds here`` or ``fails here``, never that a paper was confirmed. It holds when the
    intersection-union test over both is significant. It fails when either comparison goes significantly the other way,
    except for a gain over none that more fine-tuning exceeds: the paper's claim was over none, and held, so the verdict
    is ``not beyond its compute``. Where none of these is shown, it is equivalent if two one-sided tests, Holm-corrected
    too, show both differences to be within the margin. Otherwise, as with one gain alone, it stays ``not
    distinguishable``.
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
    equivalent = against[0].p_jointly_equivalent
    if margin and equivalent is not None and equivalent <= SIGNIFICANT:
        return f"{EQUIVALENT} {margin:g}"
    return OPEN

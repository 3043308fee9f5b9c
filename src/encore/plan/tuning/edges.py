"""The rule against choices at the edge of what was tried: a best value at an edge buys every row two more values."""

import math
from collections.abc import Collection, Sequence

from encore.plan.tuning.trials import Trial, chosen_of


def at_an_edge(trials: Sequence[Trial]) -> list[Trial]:
    """The chosen trials of rows whose value is the least or the largest that they tried.

    Rows that tried several fields together are left out: their grid is their paper's.
    """
    found = []
    for row, best in chosen_of(trials).items():
        if len(best.settings) == 1:
            values = [trial.value for trial in trials if trial.row == row]
            found += [best] if best.value in (min(values), max(values)) else []
    return found


def two_more(values: Collection[float], best: float) -> list[float]:
    """Two more values of a row, to two digits: beyond the edge that the best is at, or on both sides of the best.

    Steps beyond an edge are those of the grid there; inside, the values halve the logarithmic distance.
    """
    ordered = sorted(values)
    place = ordered.index(best)
    if place in (0, len(ordered) - 1):
        factor = ordered[0] / ordered[1] if place == 0 else ordered[-1] / ordered[-2]
        return [_two_digits(best * factor), _two_digits(best * factor**2)]
    return [_two_digits(math.sqrt(best * ordered[beside])) for beside in (place - 1, place + 1)]


def _two_digits(value: float) -> float:
    return float(f"{value:.1e}")

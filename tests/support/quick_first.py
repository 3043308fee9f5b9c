"""Parameters of a slow test, of which `make test` runs one a mechanism."""

from collections.abc import Iterable
from typing import Any

import pytest


def quick_first(rows: Iterable[Any], *, quick: int = 1) -> list[Any]:
    """The parameters, of which all but the first ``quick`` have the mark ``slow``."""
    rows = list(rows)
    slow = (pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.slow) for row in rows[quick:])
    return [*rows[:quick], *slow]

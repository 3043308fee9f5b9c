"""Columns of what a collection holds: numbers of its ``statistics.json``."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.tables.layout import CellSlice, Column, Unit
from encore.reporting.sources.base import CellSource, CellValues

FILE = "statistics.json"


class Statistic(CellSource):
    """A count or a mean over a collection; there is no chance in it."""

    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """A number from the statistics of a collection; there is one value, under no seed.

        Raises:
            EncoreError: the statistics are missing, damaged, or lack the number.
        """
        if not request.reads:
            return None
        path = Path(request.reads[0].folder) / FILE
        try:
            content = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise EncoreError(f"{path} has no statistics ({error}); run snakemake for the collection again") from error
        found = dict(_numbers(content))
        if request.value not in found:
            raise EncoreError(f"{path} has no number {request.value!r}{nearest(request.value, found)}")
        return CellValues([None], [found[request.value]])

    def named(self, request: CellSlice, column: Column) -> str:
        """The name of the statistic."""
        return f"statistic {request.value}"

    def shown(self, value: float, unit: Unit) -> str:
        """A whole number, or two digits after the point."""
        return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def _numbers(content: dict[str, Any], above: str = "") -> list[tuple[str, float]]:
    """Every number with the keys above it, between which stands a full stop."""
    found: list[tuple[str, float]] = []
    for key, value in content.items():
        if isinstance(value, dict):
            found += _numbers(value, f"{above}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((f"{above}{key}", float(value)))
    return found

"""Columns that only show what the paper prints: a complexity, the cost of a machine that nobody here has."""

from collections.abc import Mapping

from encore.plan.tables.layout import CellSlice, Column, Unit
from encore.reporting.sources.base import CellSource, CellValues


class PrintedOnly(CellSource):
    """No values of ours."""

    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """None: such a cell has only the number that the paper prints."""
        return None

    def named(self, request: CellSlice, column: Column) -> str:
        """The label of the column."""
        return column.label

    def shown(self, value: float, unit: Unit) -> str:
        """A number in its shortest form."""
        return f"{value:g}"

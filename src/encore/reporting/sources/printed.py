"""Columns that only show what the paper prints: a complexity, the cost of a machine that nobody here has."""

from collections.abc import Mapping

from encore.plan.tables.layout import CellSlice, Column, Unit
from encore.reporting.sources.base import CellSource, CellValues


class PrintedOnly(CellSource):
    """No values of ours."""

    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        return None

    def named(self, request: CellSlice, column: Column) -> str:
        return column.label

    def shown(self, value: float, unit: Unit) -> str:
        return f"{value:g}"

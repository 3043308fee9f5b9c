"""Columns that have only what a paper prints."""

from pydantic import Field

from encore.products.slices import Unit
from encore.products.tables.grid import CellSlice, Column
from encore.products.tables.sources.base import CellSource, CellValues, Parts


class PrintedOnly(CellSource):
    """No values of ours."""

    field = (bool, Field(False, description="Or: only the paper's printed number, since nothing here measures it."))

    def values(self, request: CellSlice, parts: Parts) -> CellValues | None:
        """None: such a cell has only the number that the paper prints."""
        return None

    def named(self, request: CellSlice, column: Column) -> str:
        """The label of the column."""
        return column.label

    def shown(self, value: float, unit: Unit) -> str:
        """A number in its shortest form."""
        return f"{value:g}"

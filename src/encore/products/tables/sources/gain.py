"""Columns of differences of rows under another column."""

from encore.products.tables.grid import CellSlice, Column, ColumnFields, GainEntry, Row
from encore.products.tables.sources.base import CellValues, Parts, ShareSource

OWN, OTHER = "own", "other"  # what the parts of a gain are called


class GainSource(ShareSource):
    """The difference of two cells, for each seed that both have; nothing is tested on it that is not on the cells."""

    field = (GainEntry | None, ColumnFields.model_fields["gain"])
    best = None

    def parts(self, row: Row, column: Column) -> dict[str, tuple[str, str]]:
        """The row's cell, and that of the other row; nothing for the other row itself, which gains nothing."""
        if column.gain is None or column.gain.over == row.id:
            return {}
        return {OWN: (row.id, column.gain.of), OTHER: (column.gain.over, column.gain.of)}

    def values(self, request: CellSlice, parts: Parts) -> CellValues | None:
        """Differences of the two rows under the seeds that both have; None without such a seed or without a value."""
        own, other = parts.get(OWN), parts.get(OTHER)
        if own is None or other is None:
            return None
        seeds = max(own.seeds, other.seeds, key=len)
        shared = [seed for seed in seeds if all(seed in part.seeds or part.seeds == [None] for part in (own, other))]
        return CellValues(shared, [own.under(seed) - other.under(seed) for seed in shared]) if shared else None

    def named(self, request: CellSlice, column: Column) -> str:
        """The gain with the names of its two rows."""
        return f"gain of {column.gain.of} over {column.gain.over}" if column.gain else "gain"

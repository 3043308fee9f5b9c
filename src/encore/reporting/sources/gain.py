"""Columns of what a row has more than another one: the gain over a baseline, as a paper prints it next to a mean."""

from collections.abc import Mapping

from encore.plan.tables.layout import CellSlice, Column
from encore.reporting.sources.base import CellValues, ShareSource

OWN, OTHER = "own", "other"  # what its parts are called


class GainSource(ShareSource):
    """The difference of two cells, for each seed that both have; nothing is tested on it that is not on the cells."""

    best = None

    def values(self, request: CellSlice, parts: Mapping[str, CellValues | None]) -> CellValues | None:
        """Differences of the two rows under the seeds that both have; None without such a seed or without a value."""
        own, other = parts[OWN], parts[OTHER]
        if own is None or other is None:
            return None
        seeds = max(own.seeds, other.seeds, key=len)
        shared = [seed for seed in seeds if all(seed in part.seeds or part.seeds == [None] for part in (own, other))]
        return CellValues(shared, [own.under(seed) - other.under(seed) for seed in shared]) if shared else None

    def named(self, request: CellSlice, column: Column) -> str:
        """The gain with the names of its two rows."""
        return f"gain of {column.gain.of} over {column.gain.over}" if column.gain else "gain"

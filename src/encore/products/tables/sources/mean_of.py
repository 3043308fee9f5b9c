"""Columns of means of other columns."""

from encore.errors import EncoreError
from encore.products.tables.grid import CellSlice, Column, ColumnFields, Grid, Row
from encore.products.tables.sources.base import CellValues, Parts, ShareSource


class MeanSource(ShareSource):
    """The unweighted mean of a row's cells, for each seed; nothing where one of them has nothing.

    It is a mean of sets, not of queries, so no test over queries says anything about it, and it is never compared.
    """

    field = (list[str], ColumnFields.model_fields["mean_of"])
    averaged = True

    def parts(self, row: Row, column: Column) -> dict[str, tuple[str, str]]:
        """The row's cells under the columns."""
        return {part: (row.id, part) for part in column.mean_of}

    def values(self, request: CellSlice, parts: Parts) -> CellValues | None:
        """The mean of the columns under each seed; None where one of them has no value.

        Raises:
            EncoreError: the columns have values under different seeds.
        """
        from encore.evaluation.scores import exact_mean

        found = [part for part in parts.values() if part is not None]
        if len(found) < len(parts):
            return None
        seeds = max((part.seeds for part in found), key=len)
        if any(part.seeds not in (seeds, [None]) for part in found):
            raise EncoreError(f"{' and '.join(parts)} were run under different seeds, so they have no mean for each")
        means = [exact_mean([part.under(seed) for part in found]) for seed in seeds]
        ties = [part.ties for part in found if part.ties is not None]
        low, high = (exact_mean([tie[end] for tie in ties]) for end in (0, 1))
        return CellValues(seeds, means, (low, high))

    def named(self, request: CellSlice, column: Column) -> str:
        """The mean with the ids of its columns."""
        return f"mean of {' '.join(column.mean_of)}"

    def notes(self, own: list[Column], grid: Grid) -> list[str]:
        """What each mean is over."""
        labels = {column.id: column.label for column in grid.columns}
        return [
            f"{column.label}: the mean of {', '.join(labels[part] for part in column.mean_of)}; not tested."
            for column in own
        ]

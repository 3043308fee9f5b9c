"""What stands in the cells of a table: the values of each, by seed, from the folders that its plan names."""

from encore.products.tables.comparisons import Address
from encore.products.tables.layout import Layout, Row
from encore.products.tables.sources import SOURCES, CellValues, source_of
from encore.products.tables.sources.derived import OTHER, OWN


def cell_values(layout: Layout) -> dict[Address, CellValues]:
    """What stands in the cells of a table that have values of ours.

    Raises:
        EncoreError: what a cell reads is missing, damaged, or lacks what is requested.
    """
    found = {
        (row.setting, row.id, column): values
        for row in layout.rows
        for column, values in _values(layout, row).items()
        if values is not None
    }
    for column in layout.columns:
        for row in layout.rows if column.gain else ():
            assert column.gain is not None
            own, other = ((row.setting, each, column.gain.of) for each in (row.id, column.gain.over))
            gained = source_of(column).values(row.cells[column.id], {OWN: found.get(own), OTHER: found.get(other)})
            if gained is not None and row.id != column.gain.over:
                found[row.setting, row.id, column.id] = gained
    return found


def _values(layout: Layout, row: Row) -> dict[str, CellValues | None]:
    """What stands in the cells of a row, by column, but for gains; a mean after what it is a mean of."""
    found: dict[str, CellValues | None] = {}
    waiting = [column for column in layout.columns if column.gain is None]
    while waiting:
        column = next(column for column in waiting if all(part in found for part in column.mean_of))
        parts = {part: found[part] for part in column.mean_of}
        found[column.id] = SOURCES[column.source].values(row.cells[column.id], parts)
        waiting.remove(column)
    return found

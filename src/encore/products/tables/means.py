"""What means are over: the columns that this run can have, where a collection of collections is not to be had whole."""

from collections.abc import Iterable, Iterator, Mapping

from encore.products.tables.entries import ColumnEntry
from encore.products.tables.planned import Cell


def means(columns: Iterable[ColumnEntry], cells: Iterable[Cell]) -> dict[str, list[str]]:
    """The columns that each mean is over, by its id: those that are not absent, or all of them if all are."""
    taken = {each.id: each.mean_of for each in columns if each.mean_of}
    gone = {cell.column.id for cell in cells if cell.reads and cell.reads.absent}
    while more := {name for name, parts in taken.items() if name not in gone and gone.issuperset(parts)}:
        gone |= more  # a mean of nothing but absent ones is absent too
    return {name: [part for part in parts if part not in gone] or parts for name, parts in taken.items()}


def partial(columns: Iterable[ColumnEntry], over: Mapping[str, list[str]]) -> Iterator[str]:
    """A sentence about each mean that is not over all that the paper's is over."""
    for column in columns:
        if len(over.get(column.id, [])) < len(column.mean_of):
            yield (
                f"{column.label} is the mean of {len(over[column.id])} of {len(column.mean_of)} columns here; a number "
                "printed next to it is of all."
            )

"""Inequalities over cells: weighted sums that must be above a bound.

Every kind of test becomes some of them (``entries.py``), so one rule judges all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.products.slices import Shape
from encore.products.tables.entries import Table


class Address(NamedTuple):
    """The address of a cell: table or figure, setting or panel, row or line, column or place."""

    table: str
    setting: str
    row: str
    column: str

    def __str__(self) -> str:
        return " / ".join(part for part in self if part)


DUST = 1e-9  # sums of decimals are equal within it

Terms = tuple[tuple[Address, float], ...]


@dataclass(frozen=True)
class Contrast:
    """``sum(weight * cell) > least``, or ``>=`` with ``or_equal``.

    ``terms`` are cells of ours with their weights, ``printed`` cells that count with the paper's printed value.
    ``least`` is in the measure's own unit (0 to 1). An ``equivalence`` is one half of two one-sided tests (TOST) and is
    tested at 5 % instead of 2.5 %.
    """

    terms: Terms
    least: float = 0.0
    or_equal: bool = False
    equivalence: bool = False
    printed: Terms = ()

    @property
    def plain(self) -> bool:
        """Whether it only says that one cell is above another."""
        return [weight for _, weight in self.terms] == [1, -1] and self.least == 0 and not self.printed

    def against(self, copied: Callable[[Address], bool]) -> "Contrast":
        """The same contrast with the cells of copied rows as printed numbers, since copied rows have no runs."""
        fixed = tuple(term for term in self.terms if copied(term[0]))
        return replace(
            self, terms=tuple(term for term in self.terms if term not in fixed), printed=self.printed + fixed
        )

    def __str__(self) -> str:
        (first, _), *others = self.terms
        text = str(first)
        for other, _ in others:  # without what it shares with the first
            parts = [part for part, shared in zip(other, first, strict=True) if part and part != shared]
            text += f", {' / '.join(parts) or other}"
        return text


Tables = Mapping[str, Shape | Table]  # by name, with figures that have points; as configured, or as a plan has them


def above(higher: Address, lower: Address, or_equal: bool = False) -> Contrast:
    """The contrast ``higher - lower > 0`` (or ``>=``)."""
    return Contrast(((higher, 1), (lower, -1)), or_equal=or_equal)


def check_address(address: Address, tables: Tables) -> None:
    """Check that a table has a cell."""
    table = table_of(address.table, tables)
    if address.column not in {column.id for column in table.columns}:
        near = nearest(address.column, [column.id for column in table.columns])
        raise EncoreError(f"table {address.table!r} has no column {address.column!r}{near}")
    rows = [row.id for row in table.rows if row.setting == address.setting]
    if address.row not in rows:
        settings = sorted({row.setting for row in table.rows} - {""})
        fix = (
            nearest(address.row, rows) if rows else nearest(address.setting, settings) if settings else "; it has none"
        )
        raise EncoreError(f"table {address.table!r} has no row {address.row!r} under {address.setting!r}{fix}")


def table_of(name: str, tables: Tables) -> Shape | Table:
    """The rows and columns of a table, or of a figure with points."""
    if name not in tables:
        raise EncoreError(f"there is no table {name!r}, and no figure with points{nearest(name, tables)}")
    return tables[name]


def copied_from(address: Address, tables: Tables) -> str:
    """Whose numbers a cell's row shows instead of a run's; nothing for a row that is run."""
    rows = table_of(address.table, tables).rows
    return next((row.reported_only for row in rows if (row.setting, row.id) == (address.setting, address.row)), "")


def source_of(address: Address, tables: Tables) -> str:
    """The source of a cell's values."""
    return next(column.source for column in table_of(address.table, tables).columns if column.id == address.column)

"""All numbers of a table, each cell with what a reader needs to doubt it."""

import statistics
from dataclasses import dataclass

from encore.reporting import efficiency, reported
from encore.reporting.comparisons import Address, Comparison, compare
from encore.reporting.layout import Column, Layout, Row
from encore.reporting.measured import Measured, exact_mean, measure
from encore.reporting.verdicts import UNTESTED, detectable, verdict

SYMBOLS = "†‡§¶‖"


@dataclass(frozen=True)
class Cell:
    """A row under a column. None means that there is no such number: it is shown as empty, never as zero.

    Under a column of costs ``reproduced`` is the cost, and nothing else is there.

    ``seeds`` is None for a system without chance in it. ``detectable`` is the smallest gain over none and control that
    could have been shown; ``control`` is the id of the row that ``interval`` is a difference to.
    """

    row: Row
    column: Column
    reported: float | None
    reproduced: float | None
    sd: float | None
    seeds: int | None
    ties: tuple[float, float] | None
    judged: int | None
    answered: int | None
    comparisons: dict[str, Comparison]
    control: str | None
    markers: str
    verdict: str
    detectable: float | None


@dataclass(frozen=True)
class Grid:
    """A table with its numbers; every (setting, row, column) has a cell."""

    layout: Layout
    cells: dict[Address, Cell]

    def cell(self, row: Row, column: Column) -> Cell:
        return self.cells[row.setting, row.id, column.id]

    def rows(self, setting: str) -> list[Row]:
        return [row for row in self.layout.rows if row.setting == setting]


def grid(layout: Layout) -> Grid:
    """Read the scores and reported numbers of a table and compute all its cells.

    Raises:
        EncoreError: scores are missing, lack a measure, or cannot be compared.
    """
    addresses = [(row, column, (row.setting, row.id, column.id)) for row in layout.rows for column in layout.columns]
    costs = {address: efficiency.value(row, column) for row, column, address in addresses if column.efficiency}
    found = {
        address: one
        for row, column, address in addresses
        if address not in costs and (one := measure(row, column)) is not None
    }
    compared = compare(layout, found)
    printed = reported.read(layout.reported)
    return Grid(
        layout,
        {
            address: _cell(
                layout,
                row,
                column,
                reported.find(printed, row, column),
                found.get(address),
                compared.get(address, {}),
                costs.get(address),
            )
            for row, column, address in addresses
        },
    )


def symbols(layout: Layout) -> dict[str, str]:
    """The marker of each comparator."""
    return dict(zip(layout.comparators(), SYMBOLS, strict=False))


def _cell(
    layout: Layout,
    row: Row,
    column: Column,
    printed: float | None,
    found: Measured | None,
    comparisons: dict[str, Comparison],
    cost: float | None,
) -> Cell:
    means = found.means() if found else []
    against = _decisive(layout, row, column, comparisons)
    seeded = found is not None and found.seeds != [None]
    return Cell(
        row=row,
        column=column,
        reported=printed,
        reproduced=exact_mean(means) if means else cost,
        sd=statistics.stdev(means) if len(means) > 1 else None,
        seeds=len(means) if seeded else None,
        ties=found.tie_interval() if found else None,
        judged=len(found.queries) if found else None,
        answered=found.answered() if found else None,
        comparisons=comparisons,
        control=_role(layout, row.setting, "control"),
        markers=_markers(layout, comparisons),
        verdict=_verdict(layout, row, column, found, against),
        detectable=detectable(against) if against else None,
    )


def _decisive(layout: Layout, row: Row, column: Column, comparisons: dict[str, Comparison]) -> list[Comparison]:
    """The comparisons that a verdict rests on: with none and with control, on the primary measure; both or nothing."""
    needed = [_role(layout, row.setting, "none"), _role(layout, row.setting, "control")]
    if row.role != "objective" or not column.primary or any(name not in comparisons for name in needed):
        return []
    return [comparisons[name] for name in needed if name is not None]


def _verdict(layout: Layout, row: Row, column: Column, found: Measured | None, against: list[Comparison]) -> str:
    if row.role == "objective" and column.primary and found is None:
        return UNTESTED
    return verdict(against, stand_in=layout.stand_in) if against else ""


def _role(layout: Layout, setting: str, role: str) -> str | None:
    return next((row.id for row in layout.rows if row.setting == setting and row.role == role), None)


def _markers(layout: Layout, comparisons: dict[str, Comparison]) -> str:
    """A symbol for each comparator that the row is significantly above; after a minus, below."""
    signs = {name: comparison.sign() for name, comparison in comparisons.items()}
    return "".join(("−" if signs[name] < 0 else "") + mark for name, mark in symbols(layout).items() if signs.get(name))

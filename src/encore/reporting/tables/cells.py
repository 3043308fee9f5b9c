"""All numbers of a table: each cell with its mean, interval, range over ties, counts of queries, tests and verdict."""

import statistics
from dataclasses import dataclass

from encore.evaluation.scores import exact_mean
from encore.plan.tables import printed as reported
from encore.plan.tables.layout import OURS, CellSlice, Column, Layout, Row
from encore.plan.tables.printed import Printed
from encore.reporting.sources import SOURCES, CellValues, source_of
from encore.reporting.sources.gain import OTHER, OWN
from encore.reporting.tables.comparisons import Address, RowComparison, compare_rows
from encore.reporting.tables.verdicts import UNTESTED, detectable_gain, objective_verdict

SYMBOLS = "†‡§¶‖"


@dataclass(frozen=True)
class TableCell:
    """A row under a column. None means that there is no such number: it is shown as empty, never as zero.

    ``printed`` is the paper's number as it prints it, or its word; ``reported`` is the number in our unit.
    ``interval`` is that of ``reproduced`` itself, over queries and seeds. Of the paper's ``printed_markers`` those in
    ``unconfirmed`` are not what our test says, and of those that it does not print our test says ``unprinted``.
    ``seeds`` is None for a system without chance in it. ``detectable`` is the smallest gain that could have been shown
    over what the verdict rests on; ``control`` is the id of the row that ``interval`` is a difference to.
    """

    row: Row
    column: Column
    printed: str
    reported: float | None
    reproduced: float | None
    sd: float | None
    seeds: int | None
    interval: tuple[float, float] | None
    ties: tuple[float, float] | None
    judged: int | None
    answered: int | None
    comparisons: dict[str, RowComparison]
    control: str | None
    markers: str
    printed_markers: str
    unconfirmed: str
    unprinted: str
    verdict: str
    detectable: float | None

    @property
    def request(self) -> CellSlice:
        """What the plan says of the cell: dataset, split, measure and the folders it reads."""
        return self.row.cells[self.column.id]

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, where there are both."""
        both = self.reproduced is not None and self.reported is not None
        return self.reproduced - self.reported if both else None  # type: ignore[operator]


@dataclass(frozen=True)
class TableGrid:
    """A table with its numbers; every (setting, row, column) has a cell."""

    layout: Layout
    cells: dict[Address, TableCell]

    def cell(self, row: Row, column: Column) -> TableCell:
        """The cell of a row under a column."""
        return self.cells[row.setting, row.id, column.id]

    def rows(self, setting: str) -> list[Row]:
        """The rows of a setting, in the order of the layout."""
        return [row for row in self.layout.rows if row.setting == setting]

    def is_best(self, cell: TableCell) -> bool:
        """Whether a cell is the best of its column within its setting; nothing is best alone, and no cost is."""
        if not (best := source_of(cell.column).best):
            return False
        rivals = [self.cell(row, cell.column).reproduced for row in self.rows(cell.row.setting)]
        values = [value for value in rivals if value is not None]
        return len(values) > 1 and cell.reproduced == (max if best == "highest" else min)(values)


def compute_grid(layout: Layout) -> TableGrid:
    """Read all that a table reads, and its reported numbers, and compute all its cells.

    Raises:
        EncoreError: scores are missing, lack a measure, or cannot be compared.
    """
    found = cell_values(layout)
    compared = compare_rows(layout, {address: one.queries for address, one in found.items() if one.queries})
    printed = reported.read(layout.reported)
    return TableGrid(
        layout,
        {
            (address := (row.setting, row.id, column.id)): _cell(
                layout, row, column, reported.find(printed, row, column), found.get(address), compared.get(address, {})
            )
            for row in layout.rows
            for column in layout.columns
        },
    )


def cell_values(layout: Layout) -> dict[Address, CellValues]:
    """What stands in the cells of a table that have values of ours.

    Raises:
        EncoreError: what a cell reads is missing, damaged, or lacks what is asked for.
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


def symbols(layout: Layout) -> dict[str, str]:
    """The marker of each comparator."""
    return dict(zip(layout.comparators(), SYMBOLS, strict=False))


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


def _cell(
    layout: Layout,
    row: Row,
    column: Column,
    printed: Printed | None,
    found: CellValues | None,
    comparisons: dict[str, RowComparison],
) -> TableCell:
    means = found.means if found else []
    queries = found.queries if found else None
    against = _decisive(layout, row, column, comparisons)
    seeded = found is not None and found.seeds != [None]
    confirmed = _as_printed(layout, comparisons)
    number = None if printed is None or printed.number is None else printed.number * column.reported_scale
    return TableCell(
        row=row,
        column=column,
        printed=printed.text if printed else "",
        reported=None if number is None else source_of(column).in_our_unit(number, layout.unit),
        reproduced=exact_mean(means) if means else None,
        sd=statistics.stdev(means) if len(means) > 1 else None,
        seeds=len(means) if seeded else None,
        interval=queries.interval() if queries else None,
        ties=found.ties if found else None,
        judged=len(queries.queries) if queries else None,
        answered=queries.answered() if queries else None,
        comparisons=comparisons,
        control=_role(layout, row.setting, "control"),
        markers=_markers(layout, comparisons),
        printed_markers=printed.markers if printed else "",
        unconfirmed="".join(
            mark for mark, ours in confirmed.items() if printed and mark in printed.markers and not ours
        ),
        unprinted="".join(mark for mark, ours in confirmed.items() if printed and mark not in printed.markers and ours),
        verdict=_verdict(layout, row, column, found, against),
        detectable=detectable_gain(against) if against else None,
    )


def _decisive(layout: Layout, row: Row, column: Column, comparisons: dict[str, RowComparison]) -> list[RowComparison]:
    """The comparisons that a verdict rests on, on the primary measure: with none and with control; both or nothing.

    A paper compares with none alone: its tables have no control, and their verdicts are on its own comparison.
    """
    controlled = layout.paper == OURS or any(each.role == "control" for each in layout.rows)
    needed = [_role(layout, row.setting, role) for role in ("none", *(["control"] if controlled else []))]
    if row.role != "objective" or not column.primary or any(name not in comparisons for name in needed):
        return []
    return [comparisons[name] for name in needed if name is not None]


def _verdict(layout: Layout, row: Row, column: Column, found: CellValues | None, against: list[RowComparison]) -> str:
    asked_for = bool(row.cells[column.id].system) and source_of(column).best is not None
    if found is None and (asked_for or (row.role == "objective" and column.primary)):
        return UNTESTED
    return objective_verdict(against, proxy_data=layout.proxy_data) if against else ""


def _role(layout: Layout, setting: str, role: str) -> str | None:
    return next((row.id for row in layout.rows if row.setting == setting and row.role == role), None)


def _markers(layout: Layout, comparisons: dict[str, RowComparison]) -> str:
    """A symbol for each comparator that the row is significantly above; after a minus, below."""
    signs = {name: comparison.sign() for name, comparison in comparisons.items()}
    return "".join(("−" if signs[name] < 0 else "") + mark for name, mark in symbols(layout).items() if signs.get(name))


def _as_printed(layout: Layout, comparisons: dict[str, RowComparison]) -> dict[str, bool]:
    """Of each marker of the paper's that our corrected test has a say on: whether that finds the row above."""
    meant = layout.significance.meant() if layout.significance else {}
    tested = {mark: [comparisons[row] for row in rows] for mark, rows in meant.items() if comparisons.keys() >= {*rows}}
    return {
        mark: all(one.sign() > 0 for one in each)
        for mark, each in tested.items()
        if all(one.p_holm is not None for one in each)
    }

"""A table as data, from the files that its plan names: each cell's number, interval, tests, verdict and texts."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from encore.evaluation.families import OPEN, UNTESTED, PairedDifference, detectable_gain
from encore.evaluation.scores import exact_mean
from encore.products.slices import OURS, Unit
from encore.products.tables import reported
from encore.products.tables.comparisons import Address, compare_rows, objective_verdict
from encore.products.tables.footnotes import DISAGREES, RAISED, footnotes
from encore.products.tables.grid import CellRequest, Column, PlannedColumn, PlannedRow, Row
from encore.products.tables.layout import Layout
from encore.products.tables.sources.base import CellSource, CellValues
from encore.products.tables.sources.kinds import SOURCES, TESTED, source_of
from encore.products.tables.table import Cell, Comparison, Ours, Printed, State, Table
from encore.products.tables.unseen import with_unseen
from encore.storage.csv_rows import rounded

SYMBOLS = "†‡§¶‖"
NO_NUMBER = "what it reads has no such number"
Comparisons = Mapping[str, PairedDifference]


def compute_table(layout: Layout) -> Table:
    """Read all that a table reads, and its reported numbers, and compute all its cells."""
    layout = with_unseen(layout)
    found = cell_values(layout)
    compared = compare_rows(layout, {address: one.queries for address, one in found.items() if one.queries})
    printed, ranks = reported.read(layout.printed_file), _ranks(layout, found)

    def cell(place: _Place) -> Cell:
        at = (place.row.setting, place.row.id, place.column.id)
        theirs = reported.found(printed, place.request.reported, place.row.id)
        return _cell(place, found.get(at), compared.get(at, {}), theirs, ranks.get(at))

    rows = [
        Row[Cell](
            **row.model_dump(include=Row.model_fields.keys() - {"cells"}),
            cells={column.id: cell(_Place(layout, row, column)) for column in layout.columns},
        )
        for row in layout.rows
    ]
    reads = (read for row in layout.rows for cell in row.cells.values() for read in cell.reads)
    table = Table(
        **layout.model_dump(include={"name", "paper", "title", "unit", "proxy_data"}),
        seeds=sorted({read.seed for read in reads if read.seed is not None}),
        datasets=layout.dataset_labels,
        comparators=symbols(layout),
        judged=_judged(layout, rows),
        columns=[_column(layout, column, rows) for column in layout.columns],
        rows=rows,
        notes=layout.notes,
    )
    return table.model_copy(update={"footnotes": footnotes(layout, table)})


def cell_values(layout: Layout) -> dict[Address, CellValues]:
    """The values by seed of all cells that have values of ours, from the folders that the plan names."""
    rows, columns = {(row.setting, row.id): row for row in layout.rows}, {each.id: each for each in layout.columns}
    found: dict[Address, CellValues | None] = {}

    def value(setting: str, name: str, of: str) -> CellValues | None:
        """A cell's values, after those of the cells that it is computed from; None for a row that is not built."""
        if (setting, name) not in rows:
            return None
        if (setting, name, of) not in found:
            row, column = rows[setting, name], columns[of]
            parts = {part: value(setting, *at) for part, at in source_of(column).parts(row, column).items()}
            found[setting, name, of] = source_of(column).values(row.cells[of], parts)
        return found[setting, name, of]

    for row in layout.rows:
        for column in layout.columns:
            value(row.setting, row.id, column.id)
    return {at: values for at, values in found.items() if values is not None}


def symbols(layout: Layout) -> dict[str, str]:
    """The marker of each comparator."""
    return dict(zip(layout.comparators(), SYMBOLS, strict=False))


def signed(value: float, source: CellSource = SOURCES[TESTED], unit: Unit = "share") -> str:
    """A difference as people read it, by default of measures between 0 and 1."""
    return ("+" if value >= 0 else "−") + source.shown(abs(value), unit)


@dataclass(frozen=True)
class _Place:
    """A cell's row and column in the plan of its table."""

    layout: Layout
    row: PlannedRow
    column: PlannedColumn

    @property
    def request(self) -> CellRequest:
        return self.row.cells[self.column.id]

    @property
    def source(self) -> CellSource:
        return source_of(self.column)

    def shown(self, value: float) -> str:
        return self.source.shown(value, self.layout.unit)

    def signed(self, value: float) -> str:
        return signed(value, self.source, self.layout.unit)

    def rows_of(self, role: str) -> str | None:
        """The id of the row of its setting that has a role."""
        rows = (row.id for row in self.layout.rows if row.setting == self.row.setting and row.role == role)
        return next(rows, None)


def _cell(
    place: _Place,
    found: CellValues | None,
    comparisons: Comparisons,
    printed: reported.Printed | None,
    rank: int | None,
) -> Cell:
    ours = _ours(place, found, comparisons, rank) if found and found.means else None
    mean = exact_mean(found.means) if found and found.means else None
    theirs = _printed(place, printed, comparisons, mean) if printed else None
    against = _decisive(place, comparisons)
    verdict = _verdict(place, found, against)
    detectable = rounded(detectable_gain(against)) if against else None
    needed = f" (needs {place.shown(detectable)})" if verdict == OPEN and detectable else ""
    state, reason = _state(place, ours, theirs)
    return Cell(
        request=place.request,
        measure=place.source.named(place.request, place.column),
        state=state,
        reason=reason,
        ours=ours,
        printed=theirs,
        comparisons={name: _comparison(place, one) for name, one in comparisons.items()},
        verdict=verdict,
        verdict_text=f"{verdict}{needed}",
        detectable=detectable,
    )


def _ours(place: _Place, found: CellValues, comparisons: Comparisons, rank: int | None) -> Ours:
    queries, value = found.queries, rounded(exact_mean(found.means))
    sd = rounded(statistics.stdev(found.means)) if len(found.means) > 1 else None
    return Ours(
        value=value,
        text=place.shown(value),
        sd=sd,
        sd_text="" if sd is None else place.shown(sd),
        seeds=len(found.means) if found.seeds != [None] else None,
        interval=queries.interval() if queries else None,
        ties=found.ties,
        judged=len(queries.queries) if queries else None,
        answered=queries.answered() if queries else None,
        best=rank == 1,
        second=rank == 2,
        markers=_markers(place.layout, comparisons),
    )


def _printed(place: _Place, printed: reported.Printed, comparisons: Comparisons, ours: float | None) -> Printed:
    """The paper's number, with a mark where our test disagrees, and its difference from ours."""
    scale, layout = place.column.reported_scale, place.layout
    value = None if printed.number is None else place.source.in_our_unit(printed.number * scale, layout.unit)
    ours = None if place.column.partial else ours  # which is of fewer columns than the paper's
    difference = rounded(ours - value) if ours is not None and value is not None else None
    confirmed = _confirmed(layout, comparisons)
    unconfirmed = "".join(mark for mark, above in confirmed.items() if mark in printed.markers and not above)
    unprinted = "".join(mark for mark, above in confirmed.items() if mark not in printed.markers and above)
    number = place.shown(value) if scale != 1 and value is not None else printed.text
    return Printed(
        printed=printed.text,
        value=value,
        text=number + printed.markers.translate(RAISED) + (DISAGREES if unconfirmed or unprinted else ""),
        markers=printed.markers,
        unconfirmed=unconfirmed,
        unprinted=unprinted,
        difference=difference,
        difference_text="" if difference is None else place.signed(difference),
    )


def _comparison(place: _Place, one: PairedDifference) -> Comparison:
    mean, (low, high) = one.difference.mean, one.difference.interval()
    shown, *ends = (signed(value, unit=place.layout.unit) for value in map(rounded, (mean, low, high)))
    return Comparison(
        difference=mean,
        low=low,
        high=high,
        text=f"{shown} [{', '.join(ends)}]",
        p=one.difference.p,
        p_holm=one.p_holm,
        p_ttest_one_seed=one.p_one_seed,
        p_randomisation=one.p_randomised,
        p_equivalent=one.p_equivalent,
        sign=one.sign(),
    )


def _state(place: _Place, ours: Ours | None, printed: Printed | None) -> tuple[State, str]:
    """The state of a cell, and the reason if it has no number of ours."""
    if ours:
        return "measured", ""
    request, reasons = place.request, [*_reasons(place.row, place.column, place.layout)]
    if not reasons and (request.reads or request.record):
        reasons = [NO_NUMBER]
    why = reasons[0] if reasons else ""
    if printed:
        return "reported", why
    if request.not_applicable:
        return "not applicable", why
    return ("missing" if why else "empty"), why


def _reasons(row: PlannedRow, column: Column, layout: Layout) -> Iterator[str]:
    """The reasons why a cell, or one that it is computed from, has no number."""
    request = row.cells[column.id]
    yield from filter(None, (request.not_applicable, request.absent))
    parts = [*column.mean_of, *([column.gain.of] if column.gain else [])]
    for part in (each for each in layout.columns if each.id in parts):
        yield from _reasons(row, part, layout)


def _decisive(place: _Place, comparisons: Comparisons) -> list[PairedDifference]:
    """The comparisons that a verdict rests on, on the primary measure: with none and with control; both or nothing.

    A paper compares with none alone: its tables have no control, and their verdicts are on its own comparison.
    """
    controlled = place.layout.paper == OURS or any(each.role == "control" for each in place.layout.rows)
    needed = [place.rows_of(role) for role in ("none", *(["control"] if controlled else []))]
    if place.row.role != "objective" or not place.column.primary or any(name not in comparisons for name in needed):
        return []
    return [comparisons[name] for name in needed if name is not None]


def _verdict(place: _Place, found: CellValues | None, against: Sequence[PairedDifference]) -> str:
    requested = bool(place.request.system) and place.source.best is not None
    if found is None and (requested or (place.row.role == "objective" and place.column.primary)):
        return UNTESTED
    proxy, margin = bool(place.layout.proxy_data), place.layout.margin
    return objective_verdict(against, proxy_data=proxy, margin=margin) if against else ""


def _markers(layout: Layout, comparisons: Comparisons) -> str:
    """A symbol for each comparator that the row is significantly above; after a minus, below."""
    signs = {name: comparison.sign() for name, comparison in comparisons.items()}
    return "".join(("−" if signs[name] < 0 else "") + mark for name, mark in symbols(layout).items() if signs.get(name))


def _confirmed(layout: Layout, comparisons: Comparisons) -> dict[str, bool]:
    """For each marker of the paper that our corrected test covers: whether the test finds the row above."""
    meant = layout.significance.meant() if layout.significance else {}
    tested = {mark: [comparisons[row] for row in rows] for mark, rows in meant.items() if comparisons.keys() >= {*rows}}
    return {
        mark: all(one.sign() > 0 for one in each)
        for mark, each in tested.items()
        if all(one.p_holm is not None for one in each)
    }


def _ranks(layout: Layout, found: Mapping[Address, CellValues]) -> dict[Address, int]:
    """1 for the best of a column within its setting, 2 for the second best; nothing is best alone, and no cost is."""
    ranks: dict[Address, int] = {}
    for column in (column for column in layout.columns if source_of(column).best):
        for setting in layout.settings():
            own = [(setting, row.id, column.id) for row in layout.rows if row.setting == setting]
            values = {at: rounded(exact_mean(found[at].means)) for at in own if at in found}
            order = sorted(set(values.values()), reverse=source_of(column).best == "highest")
            if len(values) > 1:
                ranks |= {at: order.index(value) + 1 for at, value in values.items()}
    return ranks


def _judged(layout: Layout, rows: Sequence[Row[Cell]]) -> str | None:
    """The primary column of a table with a control, if any row of it was compared with anything."""
    if all(row.role != "control" for row in rows):
        return None
    primary = (column.id for column in layout.columns if column.primary)
    return next((name for name in primary if any(row.cells[name].comparisons for row in rows)), None)


def _column(layout: Layout, column: PlannedColumn, rows: Sequence[Row[Cell]]) -> Column:
    """A column with what all its cells that are requested have in common."""
    cells = [row.cells[column.id] for row in rows]
    requested = [cell for cell in cells if cell.state not in ("empty", "not applicable", "reported")] or cells
    about = {
        "measure": {cell.measure for cell in requested},
        "dataset": {cell.request.dataset for cell in requested},
        "split": {cell.request.split for cell in requested},
        "unit": {source_of(column).unit(cell.request, layout.unit) for cell in requested},
    }
    alike = {name: next(iter(values)) if len(values) == 1 else "" for name, values in about.items()}
    planned = column.model_dump(include=set(Column.model_fields))
    return Column(**planned | alike | {"direction": source_of(column).best})

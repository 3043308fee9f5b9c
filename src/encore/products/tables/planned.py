"""A table's rows in its slice of the plan: each cell with its names filled and the folders that it reads."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from encore.config.systems import TakenRun
from encore.config.validation import explained
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.tables import entries
from encore.products.tables.grid import CellRequest, Origin, PlannedRow, RowFields
from encore.products.tables.sources.kinds import SOURCES, TESTED

FROM_RELEASED: Origin = "run from released weights"


@dataclass(frozen=True)
class PlannedCell:
    """A row under a column, with its names filled and the folders that it reads."""

    row: entries.RowEntry
    column: entries.ColumnEntry
    request: CellRequest


def cells(plan: Plan, name: str, table: entries.Table, rows: list[entries.RowEntry]) -> list[PlannedCell]:
    """Every cell of some rows, rows before columns."""
    found = [
        PlannedCell(row, column, _request(plan, name, table, row, column)) for row in rows for column in table.columns
    ]
    _refuse_unequal_queries(name, table, found)
    return found


def planned_row(plan: Plan, row: entries.RowEntry, own: list[PlannedCell]) -> PlannedRow:
    """A row in the form of its table's slice."""
    requests = {cell.column.id: cell.request for cell in own}
    content = row.model_dump(include=set(RowFields.model_fields) - {"system"})
    if (came := origin(plan, row, requests.values())) != "run":
        content["origin"] = came
    cells = {
        column: request.model_copy(update={"system": _called(plan, request.system)})
        for column, request in requests.items()
    }
    return PlannedRow(**content, system=row.system if "{" in row.system else _called(plan, row.system), cells=cells)


def origin(plan: Plan, row: entries.RowEntry, requests: Iterable[CellRequest]) -> Origin:
    """How a row's numbers come about in this run."""
    if row.reported_only:
        return "printed only"
    if isinstance(plan.catalogue.systems.get(row.system), TakenRun):
        return "run of others"
    run = (request.system for request in requests if request.reads and request.system)
    return FROM_RELEASED if any(map(plan.resolve.starts_released, run)) else "run"


def _request(
    plan: Plan, name: str, table: entries.Table, row: entries.RowEntry, column: entries.ColumnEntry
) -> CellRequest:
    """What a cell shows and the paper's name for it, with what it reads where it is run."""
    fill, run = partial(entries.fill_vars, row=row, column=column), entries.has_own_value(row, column)
    value = getattr(column, column.source)
    known: dict[str, Any] = {"reported": entries.printed_as(row, column)} if table.reported is not None else {}
    if why := row.not_applicable.get(column.id):
        known["not_applicable"] = why
    request = CellRequest(
        value=fill(value) if isinstance(value, str) else "",
        system=fill(row.system) if run and "system" in SOURCES[column.source].needs else "",
        dataset=fill(column.dataset),
        split=fill(column.split),
        collection="",
        reads=[],
        **known,
    )
    with explained(f"table {name!r}, row {row.id!r}, column {column.id!r}"):
        return _read(plan, column.source, request) if run else request


def _read(plan: Plan, source: str, request: CellRequest) -> CellRequest:
    absent = plan.resolve.datasets.absence(request.dataset, request.split) if request.dataset else None
    if reason := absent or (plan.resolve.missing_start(request.system) if request.system else None):
        return request.model_copy(update={"absent": reason})
    return SOURCES[source].reads(plan, request)


def _called(plan: Plan, system: str) -> str:
    return plan.resolve.canonical(system) if system else ""


def _refuse_unequal_queries(name: str, table: entries.Table, found: list[PlannedCell]) -> None:
    """Refuse rows that would be tested against comparators of their setting on other queries."""
    if table.significance is None:
        return
    compared: dict[tuple[str, str], PlannedCell] = {}
    for cell in (cell for cell in found if cell.column.source == TESTED and cell.request.reads):
        first = compared.setdefault((cell.row.setting, cell.column.id), cell)
        if (cell.request.dataset, cell.request.split) != (first.request.dataset, first.request.split):
            raise EncoreError(
                f"table {name!r}, column {cell.column.id!r}: rows {first.row.id!r} and {cell.row.id!r} of one setting "
                "are compared and answer different queries; give them separate settings, or no `significance`"
            )


def means(columns: Iterable[entries.ColumnEntry], cells: Iterable[PlannedCell]) -> dict[str, list[str]]:
    """The columns that each mean is over, by its id: those that are not absent, or all of them if all are."""
    taken = {each.id: each.mean_of for each in columns if each.mean_of}
    gone = {cell.column.id for cell in cells if cell.request.absent}
    while more := {name for name, parts in taken.items() if name not in gone and gone.issuperset(parts)}:
        gone |= more  # a mean of nothing but absent ones is absent too
    return {name: [part for part in parts if part not in gone] or parts for name, parts in taken.items()}


def partial_means(columns: Sequence[entries.ColumnEntry], over: Mapping[str, list[str]]) -> dict[str, str]:
    """A sentence about each mean that is not over all that the paper's is over, and about each gain of one."""
    found = {
        column.id: f"{column.label} is the mean of {len(over[column.id])} of {len(column.mean_of)} columns here"
        for column in columns
        if len(over.get(column.id, [])) < len(column.mean_of)
    }
    found |= {
        column.id: f"{column.label} is of a mean of fewer columns than the paper's"
        for column in columns
        if column.gain and column.gain.of in found
    }
    return {name: f"{text}; a number printed next to it is of all." for name, text in found.items()}

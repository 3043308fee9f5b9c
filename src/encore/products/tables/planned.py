"""A table's rows in its slice of the plan: each cell with its names filled and the folders that it reads."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from encore.config.validation import explained
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.tables.entries import (
    ColumnEntry,
    RowEntry,
    RowFields,
    Table,
    fill_vars,
    has_own_value,
    printed_as,
)
from encore.products.tables.grid import CellSlice
from encore.products.tables.sources.base import Reads
from encore.products.tables.sources.kinds import SOURCES, TESTED


@dataclass(frozen=True)
class Cell:
    """A row under a column; ``reads`` is None where nothing is run."""

    row: RowEntry
    column: ColumnEntry
    request: CellSlice
    reads: Reads | None


def cells(plan: Plan, name: str, table: Table, rows: list[RowEntry]) -> list[Cell]:
    """Every cell of some rows, rows before columns.

    Raises:
        EncoreError: a lineage, a dataset, a split or a measure is unknown, or rows are compared on different queries.
    """
    found = [_cell(plan, name, row, column) for row in rows for column in table.columns]
    _refuse_unequal_queries(name, table, found)
    return found


def row_plan(plan: Plan, row: RowEntry, own: list[Cell], *, reported: bool) -> dict[str, Any]:
    """A row in the form of its table's slice."""
    return row.model_dump(include=set(RowFields.model_fields)) | {
        "system": _called(plan, row.system) if row.system and "{" not in row.system else row.system,
        "cells": {cell.column.id: _cell_plan(plan, cell, reported=reported) for cell in own},
    }


def _cell(plan: Plan, name: str, row: RowEntry, column: ColumnEntry) -> Cell:
    fill, value, run = (
        partial(fill_vars, row=row, column=column),
        getattr(column, column.source),
        has_own_value(row, column),
    )
    needs_system = run and "system" in SOURCES[column.source].needs
    request = CellSlice(
        value=fill(value) if isinstance(value, str) else "",
        system=fill(row.system) if needs_system else "",
        dataset=fill(column.dataset),
        split=fill(column.split),
    )
    if not run:
        return Cell(row, column, request, None)
    place = f"table {name!r}, row {row.id!r}, column {column.id!r}"
    return Cell(row, column, request, explained(partial(_read, plan, column.source), request, place))


def _read(plan: Plan, source: str, request: CellSlice) -> Reads:
    absent = plan.resolve.datasets.absence(request.dataset, request.split) if request.dataset else None
    if reason := absent or (plan.resolve.missing_start(request.system) if request.system else None):
        return Reads(absent=reason)
    return SOURCES[source].reads(plan, request)


def _cell_plan(plan: Plan, cell: Cell, *, reported: bool) -> dict[str, Any]:
    """A cell in the form of its table's slice: what is requested of which folders, and the paper's name for it."""
    request, reads = cell.request, cell.reads or Reads()
    fields = {
        "value": request.value,
        "system": _called(plan, request.system),
        "dataset": request.dataset,
        "split": request.split,
        "collection": reads.collection,
        "reads": [{"seed": seed, "folder": artifact.folder} for seed, artifact in reads.by_seed],
    }
    reasons = {"not_applicable": cell.row.not_applicable.get(cell.column.id), "absent": reads.absent}
    fields |= {"record": reads.record} if reads.record else {}
    fields |= {"expression": reads.expression} if reads.expression else {}
    fields |= {why: reason for why, reason in reasons.items() if reason}
    return fields | ({"reported": printed_as(cell.row, cell.column)} if reported else {})


def _called(plan: Plan, system: str) -> str:
    return plan.resolve.canonical(system) if system else ""


def _refuse_unequal_queries(name: str, table: Table, found: list[Cell]) -> None:
    """Refuse rows that would be tested against comparators of their setting on other queries."""
    if table.significance is None:
        return
    compared: dict[tuple[str, str], Cell] = {}
    for cell in (cell for cell in found if cell.column.source == TESTED and cell.reads and cell.reads.by_seed):
        first = compared.setdefault((cell.row.setting, cell.column.id), cell)
        if (cell.request.dataset, cell.request.split) != (first.request.dataset, first.request.split):
            raise EncoreError(
                f"table {name!r}, column {cell.column.id!r}: rows {first.row.id!r} and {cell.row.id!r} of one setting "
                "are compared and answer different queries; give them separate settings, or no `significance`"
            )


def means(columns: Iterable[ColumnEntry], cells: Iterable[Cell]) -> dict[str, list[str]]:
    """The columns that each mean is over, by its id: those that are not absent, or all of them if all are."""
    taken = {each.id: each.mean_of for each in columns if each.mean_of}
    gone = {cell.column.id for cell in cells if cell.reads and cell.reads.absent}
    while more := {name for name, parts in taken.items() if name not in gone and gone.issuperset(parts)}:
        gone |= more  # a mean of nothing but absent ones is absent too
    return {name: [part for part in parts if part not in gone] or parts for name, parts in taken.items()}


def partial_means(columns: Iterable[ColumnEntry], over: Mapping[str, list[str]]) -> Iterator[str]:
    """A sentence about each mean that is not over all that the paper's is over."""
    for column in columns:
        if len(over.get(column.id, [])) < len(column.mean_of):
            yield (
                f"{column.label} is the mean of {len(over[column.id])} of {len(column.mean_of)} columns here; a number "
                "printed next to it is of all."
            )

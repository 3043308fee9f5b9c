"""The claims' slice of the plan: what is claimed, of which tables and figures, and what those read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import field_serializer

from encore.config.systems import Bm25
from encore.config.validation import explained, nearest, read_yaml
from encore.errors import EncoreError
from encore.plan.catalogue import Catalogue
from encore.plan.plan import Plan
from encore.products.claims import entries
from encore.products.claims.contrasts import Address, Tables, table_of
from encore.products.figures.base import FigurePoint
from encore.products.figures.inspected import INSPECTION
from encore.products.figures.plan import figure_cells, figure_shape, gaps, shapes
from encore.products.slices import NOT_BUILT, Axis, Product, Shape, SlicePart, titled
from encore.products.tables.entries import ColumnEntry, Table
from encore.products.tables.grid import CellRequest, PlannedRow
from encore.products.tables.layout import Layout
from encore.products.tables.plan import table_plan
from encore.storage.program_files import PAPERS

TITLE = "The claims on the runs"
PRINTED_ONLY = "nothing here measures it"


class Claimed(SlicePart):
    """A claim and whose it is."""

    paper: str
    claim: entries.Claim

    @field_serializer("claim")
    def _without_defaults(self, claim: entries.Claim) -> dict[str, Any]:
        return claim.model_dump(exclude_defaults=True)


class ClaimedPoint(SlicePart):
    """A point, and what it is the mean of: a measure of a split, or without one a share that an inspection found."""

    panel: str
    line: str
    place: str
    parts: list[CellRequest]


class Gap(SlicePart):
    """A cell or a point that has no value here, and why."""

    table: str
    setting: str
    row: str
    column: str
    why: str


class ClaimsSlice(Product):
    """Claims, the tables and figures that they are about, and why some of those are unavailable here."""

    title: str = TITLE
    claims: dict[str, Claimed]
    shapes: dict[str, Shape]  # all rows and columns: a claim is about all, whether or not the run builds them
    tables: dict[str, Layout]
    figures: dict[str, list[ClaimedPoint]] = {}
    checkpoints: dict[str, dict[str, str]] = {}  # by table and system, by figure and line
    unavailable: dict[str, str] = {}
    missing: list[Gap] = []
    spread: dict[str, float] = {}

    def parts(self) -> Iterator[tuple[str, list[str]]]:
        """The tables and figures that claims are about."""
        for name, table in self.tables.items():
            yield f"about {name}", [folder for row in table.rows for folder in row.folders]
        for name, points in self.figures.items():
            parts = (part for point in points for part in point.parts)
            yield f"about {name}", [read.folder for part in parts for read in part.reads]

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Folders that the tables and figures with claims are computed from."""
        found = {folder: files for table in self.tables.values() for folder, files in table.reads().items()}
        parts = (part for points in self.figures.values() for point in points for part in point.parts)
        return found | {
            Path(read.folder): None if part.split else (INSPECTION,) for part in parts for read in part.reads
        }


def claims_to_judge(plan: Plan) -> ClaimsSlice:
    """The same of claims that are to be judged; of the user's own data no paper claims anything."""
    if plan.config.proxy_data == "own":
        raise EncoreError(
            "claims are of papers, and this run is of your own data (`proxy_data: own`); leave claims out"
        )
    return claims_plan(plan)


def claims_plan(plan: Plan) -> ClaimsSlice:
    """The claims that the run judges with the tables and figures that they are about, declared by it or not.

    A table or figure that this configuration cannot have is listed with the reason; its claims are not testable here.
    """
    claims = chosen_claims(plan, entries.read_claims())
    about = list(dict.fromkeys(name for _, claim in claims.values() for name in entries.products_of(claim)))
    known = run_shapes(plan)
    tables: dict[str, Layout] = {}
    figures: dict[str, dict[FigurePoint, list[CellRequest]]] = {}
    unavailable = {}
    for name in about:
        table_of(name, known)
        try:
            if name in plan.catalogue.figures:
                figures[name] = figure_cells(plan, name)
            else:
                tables[name] = _without_texts(table_plan(plan, name))
        except EncoreError as error:
            unavailable[name] = str(error)
    if plan.config.claims != "all":
        wanted = {at for name, (_, claim) in claims.items() for at in cells_of(name, claim, known)}
        tables = {name: _with_cells(name, table, wanted) for name, table in tables.items()}
        figures = {
            name: {at: parts for at, parts in points.items() if Address(name, *at) in wanted}
            for name, points in figures.items()
        }
    there = (*tables, *figures)
    title = titled(TITLE, plan.config)
    more: dict[str, Any] = {"title": title} if title != TITLE else {}
    return ClaimsSlice(
        name=entries.CLAIMS,
        claims={name: Claimed(paper=paper, claim=claim) for name, (paper, claim) in claims.items()},
        shapes={name: _shape(known[name]) for name in about},
        tables=tables,
        figures={
            name: [ClaimedPoint(**at._asdict(), parts=parts) for at, parts in found.items()]
            for name, found in figures.items()
        },
        checkpoints={name: _checkpoints(plan, name, tables.get(name)) for name in there},
        unavailable=unavailable,
        spread=read_yaml(PAPERS / entries.SPREAD)["shares"],
        missing=[Gap(**at._asdict(), why=why) for name in there for at, why in gap_reasons(plan, name).items()],
        proxy_data=plan.config.proxy_data,
        **more,
    )


def _shape(known: Shape | Table) -> Shape:
    """What claims need of a table's or a figure's rows and columns."""
    return Shape(
        rows=[Axis(id=row.id, setting=row.setting, reported_only=row.reported_only) for row in known.rows],
        columns=[Axis(id=column.id, source=column.source, hidden=column.hidden) for column in known.columns],
    )


def _without_texts(layout: Layout) -> Layout:
    """A table without what only its notes are made of."""
    said = {name: getattr(layout, name) for name in layout.model_fields_set - {"texts"}}
    return Layout.model_construct(**said)


def checkpoint_of(system: str, catalogue: Catalogue) -> str:
    """The pre-trained checkpoint that a system was made from: a lineage down to its last pre-training.

    BM25 counts once, whatever its parameters; any other system without training counts as itself.
    """
    name = system.split("~")[0]
    entry = catalogue.systems.get(name)
    if isinstance(entry, Bm25) and entry.expansion is None:
        return entry.kind
    parts = system.split("+")
    kinds = [catalogue.steps.get(part.split("~")[0], {}).get("kind") for part in parts]
    last = max((place for place, kind in enumerate(kinds) if kind == "pretrain"), default=0)
    return "+".join(parts[: last + 1])


def _checkpoints(plan: Plan, name: str, table: Layout | None) -> dict[str, str]:
    """The checkpoint of each system in a table's cells, or of each line of a figure."""
    if table is None:
        systems = plan.resolve.figure(name).axes().lines
    else:
        own = {cell.system for row in table.rows for cell in row.cells.values()} - {""}
        systems = {system: system for system in sorted(own)}
    return {called: checkpoint_of(system, plan.catalogue) for called, system in systems.items()}


def refuse_unknown_claims(plan: Plan) -> None:
    """Refuse a run that names an unknown claim."""
    if plan.config.claims != "all":
        chosen_claims(plan, entries.read_claims())


def chosen_claims(plan: Plan, claims: Mapping[str, tuple[str, entries.Claim]]) -> dict[str, tuple[str, entries.Claim]]:
    """Those that the run judges, in their own order."""
    wanted = plan.config.claims
    if wanted == "all":
        named = {paper for paper, fields in entries.read_papers().items() if fields.claims == "named"}
        return {name: each for name, each in claims.items() if each[0] not in named}
    for name in wanted:
        if name not in claims:
            raise EncoreError(plan.config.at(f"claims: there is no claim {name!r}{nearest(name, claims)}"))
    return {name: each for name, each in claims.items() if name in wanted}


def _with_cells(name: str, table: Layout, wanted: set[Address]) -> Layout:
    """A table's slice in which only the cells that are wanted, and those they are computed from, read anything."""
    own = [at for at in wanted if at.table == name]
    read = {(at.setting, *place) for at in own for place in table.upstream(at.setting, at.row, at.column)}

    def cells(row: PlannedRow) -> dict[str, CellRequest]:
        kept = {column for setting, name, column in read if (setting, name) == (row.setting, row.id)}
        return {
            column: cell if column in kept else cell.model_copy(update={"reads": []})
            for column, cell in row.cells.items()
        }

    rows = [row.model_copy(update={"cells": cells(row)}) for row in table.rows]
    return table.model_copy(update={"rows": rows})


def cells_of(name: str, claim: entries.Claim, shapes: Tables) -> list[Address]:
    """The cells and points that a claim, its premise and its control are about, each once."""
    tests = entries.number_tests([*claim.premise, *claim.tests, *claim.control])
    with explained(f"claim {name}"):
        found = [at for test in tests for one in test.contrasts(shapes) for at, _ in (*one.terms, *one.printed)]
    return list(dict.fromkeys(found))


def all_shapes(catalogue: Catalogue) -> dict[str, Shape | Table]:
    """The rows and columns of every table, and of every figure with points, by name."""
    return {**catalogue.tables, **shapes(catalogue.figures)}


def run_shapes(plan: Plan) -> dict[str, Shape | Table]:
    """The same as this run scales them."""
    known = all_shapes(plan.catalogue)
    return known | {name: figure_shape(plan, name) for name in plan.catalogue.figures if name in known}


def computed_from(plan: Plan, name: str) -> dict[Address, list[CellRequest]]:
    """What each cell of a table, or point of a figure, is computed from: requests, each with what it reads."""
    if name in plan.catalogue.figures:
        return {Address(name, *at): parts for at, parts in figure_cells(plan, name).items()}
    table = table_plan(plan, name)
    places = ((row.setting, row.id, column) for row in table.rows for column in row.cells)
    return {Address(name, *at): list(table.upstream(*at).values()) for at in places}


def gap_reasons(plan: Plan, name: str) -> dict[Address, str]:
    """Why cells of a table, or points of a figure, have no value here."""
    found = gaps(plan, name) if name in plan.catalogue.figures else _table_gaps(plan, name)
    return {Address(name, *at): why for at, why in found}


def _table_gaps(plan: Plan, name: str) -> Iterator[tuple[tuple[str, str, str], str]]:
    """The cells of a table that have no value of ours, each with the reason; not those of copied rows."""
    table, built = plan.catalogue.tables[name], table_plan(plan, name).rows
    cells = {(row.setting, row.id): row.cells for row in built}
    columns = {column.id: column for column in table.columns}
    for row in (row for row in table.rows if not row.reported_only):
        for column in table.columns:
            own = cells.get((row.setting, row.id))
            if why := _why(column.id, columns, own) if own else NOT_BUILT:
                yield (row.setting, row.id, column.id), why


def _why(name: str, columns: Mapping[str, ColumnEntry], cells: Mapping[str, CellRequest]) -> str:
    """Why a row has no value of ours under a column, by its planned cells; empty if it has one."""
    column, cell = columns[name], cells[name]
    if cell.not_applicable:
        return cell.not_applicable
    if column.printed:
        return PRINTED_ONLY
    if column.mean_of:
        parts = [_why(part, columns, cells) for part in column.mean_of]
        return parts[0] if all(parts) else ""  # a mean of some is shown, and the table notes of which
    return cell.absent

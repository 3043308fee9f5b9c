"""Released runs that a run's configuration names for rows of tables: the runs of ours that each is compared with.

How close they are is in ``results/tables/<table>.reproduction.csv``, which ``reproduction.py`` writes.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from encore.config.run import ReleasedRun
from encore.config.validation import explained, nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.slices import Read
from encore.products.tables.layout import Layout, Reference, RowAddress
from encore.products.tables.planned import PlannedCell
from encore.products.tables.sources.kinds import TESTED
from encore.storage.files import remembered_contents


def references(plan: Plan, name: str, found: Sequence[PlannedCell]) -> list[Reference]:
    """Each released run of a table with the columns that share it, our runs by seed, and the row it is a gain over."""

    def made_from(scores: Read, what: str) -> str:
        return plan.made[scores.folder].inputs[what].folder

    given, place = plan.config.references.get(name, []), plan.config.at(f"references.{name}")
    chosen = [(one, _cell(place, one.row, one.column, found)) for one in given]
    return [
        Reference(
            setting=cell.row.setting,
            row=cell.row.id,
            columns=[other.column.id for other in _sharing(cell, found)],
            run=one.run,
            ours=[Read(seed=read.seed, folder=made_from(read, "run")) for read in cell.request.reads],
            collection=made_from(cell.request.reads[0], "collection"),
            over=_over(place, one, cell, chosen),
        )
        for one, cell in chosen
    ]


def reference_digests(layout: Layout) -> dict[str, Any]:
    """The digests of released runs, so that another file makes the table again."""
    files = {one.run: Path(one.run) for one in layout.references}
    with explained(f"references of {layout.name}"):
        return {"references_sha256": remembered_contents(files)} if files else {}


def refuse_damaged(plan: Plan, tables: Iterable[str]) -> None:
    """Read the released runs of some tables as their job will, since a job that fails comes after all others."""
    from encore.data.trec_runs import read_trec

    for table in dict.fromkeys(tables):
        place = plan.config.at(f"references.{table}")
        for one in plan.config.references.get(table, ()):
            try:
                answered = len(read_trec(Path(one.run)))
            except EncoreError as error:  # whose message says how to fix our own runs
                raise EncoreError(f"{place}: {str(error).rpartition(';')[0]}; bring another copy") from error
            if answered == 0:
                raise EncoreError(f"{place}: {one.run} has no line; name a run in TREC's form")


def _cell(place: str, row: str, column: str, found: Sequence[PlannedCell]) -> PlannedCell:
    """The cell that a person means."""
    rows = [cell for cell in found if row in cell.row.names]
    if not rows:
        known = {name for cell in found for name in cell.row.names}
        raise EncoreError(f"{place}: no row {row!r} is built{nearest(row, known)}")
    if len(settings := dict.fromkeys(cell.row.setting for cell in rows)) > 1:
        raise EncoreError(f"{place}: row {row!r} is under {', '.join(settings)}; write `setting: {row}`")
    cells = [cell for cell in rows if cell.column.id == column]
    if not cells:
        raise EncoreError(f"{place}: there is no column {column!r}{nearest(column, [c.column.id for c in rows])}")
    if cells[0].column.source != TESTED or not cells[0].request.reads:
        raise EncoreError(f"{place}: row {row!r} has no run of ours under column {column!r}; name another")
    return cells[0]


def _over(
    place: str, one: ReleasedRun, cell: PlannedCell, chosen: Sequence[tuple[ReleasedRun, PlannedCell]]
) -> RowAddress | None:
    """The row that a run is a gain over; it needs its own run, since theirs is over that."""
    if one.over is None:
        return None
    for other, base in chosen:
        alike = one.over == f"{base.row.setting}: {base.row.id}"
        alike |= one.over == base.row.id and base.row.setting == cell.row.setting
        if alike and other.column == one.column and base.row is not cell.row:
            return RowAddress(setting=base.row.setting, row=base.row.id)
    raise EncoreError(
        f"{place}: {one.row!r} is over {one.over!r}, which has no run under column {one.column!r}; name one"
    )


def _sharing(cell: PlannedCell, found: Sequence[PlannedCell]) -> list[PlannedCell]:
    """The cells of its row that show measures of the same runs."""
    return [
        other
        for other in found
        if other.row is cell.row and other.column.source == TESTED and other.request.reads == cell.request.reads
    ]

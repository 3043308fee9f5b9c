"""Rows of a table that the run's own ``systems`` are, which ``tables`` names: runs that others made, for example.

A system is a row in each setting of the table, or in the one that is named before it: ``Mined negatives: theirs``.
"""

from collections.abc import Sequence
from pathlib import Path

from encore.config.systems import TakenRun
from encore.errors import EncoreError
from encore.plan.artifacts.systems import taken_file
from encore.plan.plan import Plan
from encore.products.tables.entries import ColumnEntry, RowEntry, Table, fill_vars
from encore.products.tables.sources.kinds import SOURCES, TESTED

NOT_OURS, NO_ANSWERS = "others made the run", "the run has no answers to those queries"


def with_own_rows(plan: Plan, name: str, table: Table, rows: list[RowEntry]) -> list[RowEntry]:
    """The chosen rows of a table with those of the run's systems that ``tables`` names, at the end of each setting."""
    wanted = plan.config.tables.get(name, "all")
    own = [each for each in wanted if each.rpartition(": ")[2] in plan.config.systems] if wanted != "all" else []
    if not own:
        return rows
    settings = dict.fromkeys(row.setting for row in rows or table.rows)
    placed = {setting: [row for row in rows if row.setting == setting] for setting in settings}
    for each in own:
        of, _, system = each.rpartition(": ")
        if any(row.id == system for row in table.rows):
            raise EncoreError(f"tables.{name}: the table has a row {system!r}; give the system another name")
        if of and of not in placed:
            raise EncoreError(f"tables.{name}: {each!r} names a setting that no row is built of; name a row of it too")
        for setting in [of] if of else settings:
            placed[setting].append(_row(plan, system, setting, table.columns))
    return [row for placed_rows in placed.values() for row in placed_rows]


def own_systems(plan: Plan, rows: Sequence[RowEntry]) -> list[str]:
    """The ids of the rows that are systems of the run's own, each once."""
    return list(dict.fromkeys(row.id for row in rows if row.system in plan.config.systems))


def taken_notes(plan: Plan, rows: Sequence[RowEntry]) -> list[str]:
    """Of each run that others made: where it comes from, and its digest."""
    found = []
    for system in own_systems(plan, rows):
        fields = plan.resolve.system(system)
        if isinstance(fields, TakenRun):
            files = taken_file(plan, system, fields)
            digest = files.sha256 if files.folder else fields.sha256 or ""
            parts = [
                fields.source,
                fields.url or Path(str(fields.path)).name,
                f"sha256 {digest[:12]}" if digest else "",
            ]
            found.append(f"{fields.label or system}: a run that others made ({', '.join(filter(None, parts))}).")
    return found


def _row(plan: Plan, system: str, setting: str, columns: Sequence[ColumnEntry]) -> RowEntry:
    fields = plan.resolve.system(system)
    row = RowEntry(id=system, label=getattr(fields, "label", "") or system, setting=setting, system=system)
    lacking = {}
    for column in columns:
        if column.source != TESTED and "system" in SOURCES[column.source].needs:
            lacking[column.id] = NOT_OURS
        elif column.source == TESTED and not _answers(plan, getattr(fields, "answers", ()), row, column):
            lacking[column.id] = NO_ANSWERS
    return row.model_copy(update={"not_applicable": lacking})


def _answers(plan: Plan, answers: Sequence[str], row: RowEntry, column: ColumnEntry) -> bool:
    """Whether a run has answers to a column's queries, by what its entry says."""
    dataset, split = (fill_vars(text, row, column) for text in (column.dataset, column.split))
    if not answers or plan.resolve.datasets.absence(dataset, split):
        return True
    known = plan.resolve.dataset(dataset)
    splits = known.fields.splits
    over = (split, (splits[split].topics or split) if split in splits else split)
    return any(each in answers for own in (dataset, known.name) for each in (own, *(f"{own}.{one}" for one in over)))

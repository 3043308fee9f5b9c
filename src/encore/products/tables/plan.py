"""A table's slice of the plan, and all slices that a configuration declares."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from encore.config.systems import TakenRun
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifacts.systems import taken_file
from encore.plan.plan import Plan
from encore.products.slices import paper_of, titled
from encore.products.tables.budgets import with_models
from encore.products.tables.entries import ColumnEntry, RowEntry, Table, fill_vars, has_own_value
from encore.products.tables.grid import MARKS, PlannedColumn, PlannedRow, Significance
from encore.products.tables.layout import Layout
from encore.products.tables.notes import notes, published_name
from encore.products.tables.planned import cells, means, partial_means, planned_row
from encore.products.tables.rates import rate_notes, refuse_unlike_choices
from encore.products.tables.reported import reported_file
from encore.products.tables.sources.kinds import SOURCES, TESTED
from encore.products.tables.starts import start_notes
from encore.products.tables.texts import searched_texts
from encore.products.tables.trainings import validated
from encore.storage import program_files
from encore.storage.files import sha256

NOT_OURS, NO_ANSWERS = "others made the run", "the run has no answers to those queries"
CURVES = "pretraining"  # the figure of the pre-training steps of all tables

# What was found for each plan: every wildcard of the workflow requests a table's slice again.
_known: WeakKeyDictionary[Plan, dict[str, tuple[Table, Layout]]] = WeakKeyDictionary()


def table_plan(plan: Plan, name: str) -> Layout:
    """Rows with what their cells read, columns, and the design of the tests."""
    table = _table(plan, name)
    known = _known.setdefault(plan, {})
    if name not in known or known[name][0] is not table:
        known[name] = table, layout_of(plan, name, table)
    layout = known[name][1]
    digests = reported_file(name, table) | _records(layout.rows)
    return layout.model_copy(update=digests)


def table_to_make(plan: Plan, name: str) -> Layout:
    """The same of a table that is to be made, which may be refused: not where trials for it are, which plan it too."""
    layout = table_plan(plan, name)
    refuse_unlike_choices(plan, layout)
    return layout


def has_figure(layout: Layout) -> bool:
    """True if a table compares an objective with a control of its setting, so that the difference can be drawn."""
    column = next((column.id for column in layout.columns if column.primary), None)
    roles: dict[str, set[str]] = {}
    for row in layout.rows:
        if column and row.cells[column].reads and (row.role != "control" or row.id in layout.comparators()):
            roles.setdefault(row.setting, set()).add(row.role)
    return any({"objective", "control"} <= found for found in roles.values())


def layout_of(plan: Plan, name: str, table: Table) -> Layout:
    """All of a table's slice that does not depend on files."""
    rows, own = _chosen(plan, name, table), plan.config.proxy_data == "own"
    rows = [_with_name(plan, row) for row in rows] if own else rows
    found = cells(plan, name, table, rows)
    width, run = len(table.columns), [cell.request for cell in found if has_own_value(cell.row, cell.column)]
    datasets = dict.fromkeys(request.dataset for request in run if request.dataset)
    over = means(table.columns, found)
    partial = partial_means(table.columns, over)
    texts = searched_texts(plan, run)
    cells_of = (found[place * width : (place + 1) * width] for place in range(len(rows)))
    planned = [planned_row(plan, row, own) for row, own in zip(rows, cells_of, strict=True)]
    more: dict[str, Any] = {"texts": texts} if texts else {}
    if own and all(plan.resolve.dataset(each).fields.zero_shot for each in datasets):
        more["untrained"] = True
    layout = Layout(
        name=name.rsplit("/", 1)[-1],
        paper=paper_of(name),
        title=titled(table.title, plan.config),
        unit=table.unit,
        rows=with_models(planned, plan.made),
        columns=[_column(column, over.get(column.id, []), column.id in partial, plain=own) for column in table.columns],
        dataset_labels={dataset: plan.resolve.dataset(dataset).name for dataset in datasets},
        significance=_design(plan, table, rows),
        notes=[
            *table.notes,
            *start_notes(plan, found),
            *notes(plan, rows, found),
            *taken_notes(plan, rows),
            *partial.values(),
        ],
        proxy_data=plan.config.proxy_data,
        **more,
    )
    changes: dict[str, Any] = {"notes": [*layout.notes, *rate_notes(plan, layout)]}
    chosen = validated(layout, plan.made) if layout.significance else []
    return layout.model_copy(update=changes | ({"validated": chosen} if chosen else {}))


def _with_name(plan: Plan, row: RowEntry) -> RowEntry:
    """A row of a published encoder as it is, called by what it is the checkpoint of."""
    if not row.system or {*"{+@"} & {*row.system} or row.system in plan.catalogue.systems:
        return row
    name = published_name(plan, plan.resolve.lineage(row.system).backbone)
    return row.model_copy(update={"label": name}) if name else row


def _column(column: ColumnEntry, over: list[str], is_partial: bool, *, plain: bool) -> PlannedColumn:
    """A column in the form of its table's slice.

    Args:
        over: the columns that it is the mean of here, if any.
        plain: call a measure as data and runs call it, and not as papers print it.
    """
    shown = {"id", "label", "hidden", "primary", "reported_scale"} | ({"gain"} if column.gain else set())
    partial = {"partial": True} if is_partial else {}
    fields = column.model_dump(include=shown) | partial
    fields |= {"label": column.label.replace("MRR@", "RR@")} if plain else {}
    return PlannedColumn(source=column.source, mean_of=over, **fields)


def _table(plan: Plan, name: str) -> Table:
    if name in (CURVES, "index"):  # results/plan/index.json is the plan's own
        raise EncoreError(f"tables.{name}: that name is taken by a file of every run; rename the table")
    if name not in plan.catalogue.tables:
        raise EncoreError(f"tables.{name}: no such table in config/papers{nearest(name, plan.catalogue.tables)}")
    return plan.catalogue.tables[name]


def _chosen(plan: Plan, name: str, table: Table) -> list[RowEntry]:
    """The rows that the run builds, in the table's order: all, or those listed by ``id`` or by ``setting: id``."""
    wanted = plan.config.tables.get(name, "all")
    if wanted == "all":
        return table.rows
    return with_own_rows(plan, name, table, [row for row in table.rows if row.names & set(wanted)])


def _design(plan: Plan, table: Table, rows: list[RowEntry]) -> Significance | None:
    """The tests, against those comparators that the run builds, and against its own systems as far as marks go."""
    design = table.significance
    if design is None:
        return None
    built, meant = {row.id for row in rows}, design.meant()
    printed = {symbol: rows for symbol, rows in design.printed.items() if built.issuperset(meant[symbol])}
    compared = [*(row for row in design.comparators if row in built), *own_systems(plan, rows)][:MARKS]
    more: dict[str, Any] = {"printed": printed} if printed else {}
    more |= {name: value for name in ("margin", "crossed") if (value := getattr(design, name))}
    return Significance(comparators=compared, family=design.family, **more)


def _records(rows: Sequence[PlannedRow]) -> dict[str, Any]:
    """The digests of the records that cells read, so that a new measurement makes the table again."""
    files = dict.fromkeys(cell.record for row in rows for cell in row.cells.values() if cell.record)
    return {"records_sha256": {file: sha256(program_files.found(file)) for file in files}} if files else {}


def with_own_rows(plan: Plan, name: str, table: Table, rows: list[RowEntry]) -> list[RowEntry]:
    """The chosen rows of a table with those of the run's systems that ``tables`` names, at the end of each setting.

    A system is a row in each setting, or in the one that is named before it: ``Mined negatives: theirs``.
    """
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
            placed[setting].append(_own_row(plan, system, setting, table.columns))
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


def _own_row(plan: Plan, system: str, setting: str, columns: Sequence[ColumnEntry]) -> RowEntry:
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

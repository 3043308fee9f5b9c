"""A lineage or system next to the unchanged one and the control: a table of two or three rows, computed as any."""

from itertools import groupby
from pathlib import Path

from encore.commands.show_config import aligned
from encore.plan.lineage import Lineage, StepName, split_index
from encore.plan.plan import Plan
from encore.products.tables.budgets import budget_notes
from encore.products.tables.compute import compute_table
from encore.products.tables.entries import ColumnEntry, RowEntry, Table
from encore.products.tables.grid import Significance
from encore.products.tables.layout import Layout
from encore.products.tables.plan import layout_of
from encore.products.tables.table import Cell, Row
from encore.products.targets import reported_splits
from encore.storage import manifest

OWN, UNCHANGED, CONTROL = "this", "unchanged", "control"  # ids of rows


def lineage_text(plan: Plan, name: str) -> str | None:
    """Its measures, those of the others, and the differences with their intervals; None if it has no scores.

    Args:
        name: a lineage, with or without an index, or a system.
    """
    plain, name = unchanged(plan, name), plan.resolve.canonical(name)
    others = {UNCHANGED: plain, CONTROL: control_of(plan, plain)}
    systems = {OWN: name} | {row: system for row, system in others.items() if system and system != name}
    columns = [column for column in _columns(plan, name) if _is_made(plan, name, column)]
    if not columns:
        return None
    rows = [_row(plan, row, system, columns) for row, system in systems.items()]
    significance = Significance(comparators=[row for row in systems if row != OWN])
    layout = layout_of(plan, name, Table(title=name, rows=rows, columns=columns, significance=significance))
    for row in layout.rows:
        for folder in row.folders:
            manifest.verify(Path(folder))
    head = aligned(list(systems.items()))
    return "\n".join([*head, "", *_lines(layout.model_copy(update={"texts": []}))])


def unchanged(plan: Plan, name: str) -> str:
    """A lineage without the values that its name overrides; a system is its own."""
    if name in plan.catalogue.systems:
        return name
    text, index = split_index(name)
    lineage = plan.resolve.lineage(text)
    plain = Lineage(lineage.backbone, tuple(StepName(step.name) for step in lineage.steps))
    return f"{plain}@{index.name}" if index else str(plain)


def control_of(plan: Plan, name: str) -> str | None:
    """The control of the first setting of a table, the run's before others, that has a lineage as a row."""
    for table in dict.fromkeys([*plan.config.tables, *plan.catalogue.tables]):
        rows = [row for row in plan.catalogue.tables[table].rows if row.system and "{" not in row.system]
        controls = {row.setting: row.system for row in rows if row.role == "control"}
        for row in rows:
            if row.setting in controls and plan.resolve.canonical(row.system) == name:
                return plan.resolve.canonical(controls[row.setting])
    return None


def _columns(plan: Plan, name: str) -> list[ColumnEntry]:
    """Every measure of every split that it is tested on."""
    splits = [{"dataset": dataset, "split": split} for dataset, split, _ in reported_splits(plan, name)]
    return [
        ColumnEntry.model_validate(each | {"id": f"{'.'.join(each.values())}.{name}", "label": name, "measure": name})
        for each in splits
        for name in plan.resolve.dataset(each["dataset"]).fields.splits[each["split"]].measures
    ]


def _is_made(plan: Plan, system: str, column: ColumnEntry) -> bool:
    """Whether a system has scores under a column, of every seed of the run."""
    seeds = plan.config.seeds if plan.resolve.has_chance(system) else [None]
    scores = (plan.scores(system, seed, column.dataset, column.split).manifest for seed in seeds)
    return all(Path(each).is_file() for each in scores)


def _row(plan: Plan, name: str, system: str, columns: list[ColumnEntry]) -> RowEntry:
    """A row whose cells are those that have scores."""
    missing = {column.id: "not made" for column in columns if not _is_made(plan, system, column)}
    role = "control" if name == CONTROL else "objective"
    return RowEntry(id=name, label=system, system=system, role=role, not_applicable=missing)


def _lines(layout: Layout) -> list[str]:
    """A line for each measure, below its dataset and split, and what differences are."""
    table = compute_table(layout)
    own, *others = table.rows
    lines = [["", OWN, *(title for row in others for title in (row.id, "difference [95 %]"))]]
    for split, columns in groupby(table.columns, lambda column: (column.dataset, column.split)):
        lines.append([", ".join(split), *[""] * (len(lines[0]) - 1)])
        lines += [[f"  {column.label}", *_cells(own, others, column.id)] for column in columns]
    over = "queries and seeds" if len(table.seeds) > 1 else "queries"
    told = [f"Seeds: {', '.join(map(str, table.seeds))}."] if table.seeds else []
    told += [f"Differences: this less the other, over {over}, by the test of tables, each by itself."] if others else []
    told += budget_notes(layout)
    return [*(line.rstrip() for line in aligned(lines)), "", *(f"- {each}" for each in told)]


def _cells(own: Row[Cell], others: list[Row[Cell]], column: str) -> list[str]:
    """What our row has under a column, then what each other has and how far ours is from it."""
    compared = own.cells[column].comparisons
    apart = {row.id: compared[row.id].text if row.id in compared else "" for row in others}
    numbers = {row.id: row.cells[column].text or row.cells[column].reason for row in (own, *others)}
    return [numbers[OWN], *(text for row in others for text in (numbers[row.id], apart[row.id]))]

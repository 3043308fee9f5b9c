"""Why cells of a table have no value here, as the plan knows it."""

from collections.abc import Iterator

from encore.plan.plan import Plan
from encore.products.figures.claimed import NOT_DRAWN
from encore.products.tables.entries import SOURCES, ColumnEntry, RowEntry, Table, fill_vars

NOT_BUILT = "the run's configuration does not build the row"
LEFT_OUT = (NOT_BUILT, NOT_DRAWN)  # by the run's own choice, which says nothing about what it could have
PRINTED_ONLY = "nothing here measures it"


def table_gaps(plan: Plan, name: str) -> Iterator[dict[str, str]]:
    """The cells of a table that have no value of ours, each with the reason; not those of copied rows."""
    table = plan.catalogue.tables[name]
    wanted = plan.config.tables.get(name, "all")
    for row in table.rows:
        built = wanted == "all" or row.names & set(wanted)
        for column in table.columns if not row.reported_only else []:
            if why := _why(plan, table, row, column) if built else NOT_BUILT:
                yield {"table": name, "setting": row.setting, "row": row.id, "column": column.id, "why": why}


def _why(plan: Plan, table: Table, row: RowEntry, column: ColumnEntry) -> str:
    if column.id in row.not_applicable:
        return row.not_applicable[column.id]
    if column.printed:
        return PRINTED_ONLY
    if column.mean_of:
        known = {each.id: each for each in table.columns}
        parts = [_why(plan, table, row, known[part]) for part in column.mean_of]
        return parts[0] if all(parts) else ""  # a mean of some is shown, and the table says of which
    needs = SOURCES[column.source]
    dataset, split = (fill_vars(text, row, column) for text in (column.dataset, column.split))
    gone = plan.resolve.absence(dataset, split) if "dataset" in needs else None
    return gone or ((plan.resolve.missing_start(fill_vars(row.system, row, column)) or "") if "system" in needs else "")

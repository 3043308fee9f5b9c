"""What a person asks ``encore explain`` about: a claim, a line or a point of a figure, or a table's cells."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.claims.deciding import RUNS, claim_reads, judged_line
from encore.products.claims.entries import CLAIMS, read_claims
from encore.products.figures.plan import curves_plan, figure_cells, figure_plan
from encore.products.slices import Read
from encore.products.tables.grid import PlannedRow
from encore.products.tables.layout import Layout, of_unseen
from encore.products.tables.plan import CURVES, table_plan
from encore.storage.csv_rows import read_rows
from encore.storage.files import sha256

TABLES = "results/tables/"
FIGURES = "results/figures/"
FILES = (".csv", ".json", ".md", ".tex", ".html", ".png", ".svg")
VERDICT = ("verdict", "why", "held", "inequalities", "estimate", "interval_low", "interval_high", "p")
SHOWN = {"ours": "reproduced", "sd": "sd", "seeds": "seeds", "paper's": "reported"}  # columns of the CSV


@dataclass
class Explanation:
    """What a person asked about: its name, what there is to say of it, and what it reads."""

    title: str
    lines: list[str] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    address: dict[str, Any] = field(default_factory=dict)  # of a cell: its table, row, setting, column and records


def explanations(
    plan: Plan, target: str, row: str | None, column: str | None = None, setting: str | None = None
) -> list[Explanation]:
    """What a person means by a product and a place in it, by ids or by labels; several if a row has several settings.

    Args:
        target: a file below ``results/``, or the name of a table: ``costa/table1``.
        row: a row, a line of a figure, or a claim; without it, the refusal lists them.
        column: a column, or the place of a figure's point.
        setting: of a row, or the panel of a figure.
    """
    target = target.removeprefix("./")
    figure = target.removeprefix(FIGURES).rsplit(".", 1)[0]
    if Path(target).name in (f"{CLAIMS}.csv", f"{CLAIMS}.md"):
        return [_claim(plan, row)]
    if target.startswith(FIGURES) and figure not in plan.catalogue.tables:  # a table's figure shows the table's cells
        return [_point(plan, figure, row, column, setting) if row and column else _line(plan, figure, row)]
    return _cells(plan, table_named(plan, target), row, column, setting)


def table_named(plan: Plan, table: str) -> str:
    """The name of a table that a person means by its name or by one of its files."""
    name = table.removeprefix("./").removeprefix(TABLES).removeprefix(FIGURES)
    name = name.rsplit(".", 1)[0] if name.endswith(FILES) else name
    if name not in plan.catalogue.tables:
        raise EncoreError(f"there is no table {name!r}{nearest(name, plan.catalogue.tables)}")
    return name


def _refusal(product: str, kind: str, asked: str | None, known: Mapping[str, str]) -> EncoreError:
    """Why a row, column, line or claim that is not named, or not there, is refused; ``known`` are labels by id."""
    if asked is None:
        return EncoreError(
            f"name a {kind} of {product} with --{'column' if kind == 'column' else 'row'}: {', '.join(known)}"
        )
    return EncoreError(f"{product} has no {kind} {asked!r}{nearest(asked, {*known, *known.values()})}")


def _claim(plan: Plan, asked: str | None) -> Explanation:
    """What was judged of a claim, and its cells with what they show."""
    claims, name = read_claims(), (asked or "").upper()
    if name not in claims:
        raise _refusal(f"{CLAIMS}.csv", "claim", asked, {each: each for each in claims})
    paper, claim = claims[name]
    explained = Explanation(f"{name} ({paper}, {claim.place}): {claim.says}")
    judged = judged_line(RUNS, name)
    if told := ", ".join(f"{key} {judged[key]}" for key in VERDICT if judged.get(key)):
        explained.lines.append(f"  {CLAIMS}: {told}")
    for address, reads in claim_reads(plan, name, claim)[0].items():
        shown = "" if address.table in plan.catalogue.figures else shown_in(*address)
        explained.lines.append(f"  {address}" + (f": {shown}" if shown else ""))
        explained.reads += [read for read in reads if read not in explained.reads]
    return explained


def _point(plan: Plan, figure: str, line: str, place: str, panel: str | None) -> Explanation:
    """A point of a figure whose points claims can name."""
    found = {at: parts for at, parts in figure_cells(plan, figure).items() if (at.line, at.place) == (line, place)}
    chosen = {at: parts for at, parts in found.items() if panel in (None, at.panel)}
    if not found:
        raise EncoreError(f"figure {figure!r} has no point of {line!r} at {place!r} that claims could name")
    if len(chosen) != 1:
        panels = ", ".join(repr(at.panel) for at in found)
        raise EncoreError(f"{line!r} of figure {figure!r} is in {panels}; choose one with --setting")
    ((at, parts),) = chosen.items()
    return Explanation(f"{figure}: {' / '.join(at)}", reads=[read for part in parts for read in part.reads])


def _line(plan: Plan, figure: str, line: str | None) -> Explanation:
    """A whole line of a figure, and the system that it shows."""
    drawn = curves_plan(plan) if figure == CURVES else figure_plan(plan, figure)
    known = {getattr(each, "id", "") or each.label: each.label for each in drawn.rows}
    asked = (line or "").lower()
    named = [each for each in drawn.rows if asked in {getattr(each, "id", "").lower(), each.label.lower()} - {""}]
    if not named:
        raise _refusal(f"figure {figure!r}", "line", line, known)
    system = getattr(named[0], "system", "") or getattr(named[0], "lineage", "")
    reads = [
        Read(seed=None, folder=folder) for label, own in drawn.parts() if label == named[0].label for folder in own
    ]
    return Explanation(f"{figure}: {named[0].label}" + (f", {system}" if system else ""), reads=reads)


def _cells(plan: Plan, table: str, row: str | None, column: str | None, setting: str | None) -> list[Explanation]:
    """The cells of a row and a column, one for each setting of the row."""
    layout = table_plan(plan, table)
    columns = {(each.id, each.label): each.id for each in layout.columns}
    columns |= {of_unseen(*names): planned for names, planned in columns.items()}  # which read as the planned ones
    chosen_columns = [names for names in columns if column in names]
    rows = [each for each in layout.rows if row and row.lower() in (each.id.lower(), each.label.lower())]
    if not rows:
        raise _refusal(f"table {table!r}", "row", row, {each.id: each.label for each in layout.rows})
    if not chosen_columns:
        raise _refusal(f"table {table!r}", "column", column, {each.id: each.label for each in layout.columns})
    chosen = [each for each in rows if setting in (None, each.setting)]
    if not chosen:
        settings = ", ".join(repr(each.setting) for each in rows)
        raise EncoreError(f"{row!r} of table {table!r} is under {settings}, not under {setting!r}")
    shown = chosen_columns[0]
    return [_cell(layout, table, each, shown, columns[shown]) for each in chosen]


def _cell(layout: Layout, table: str, row: PlannedRow, shown: tuple[str, str], planned: str) -> Explanation:
    """A cell of a table's plan, which reads what those read that it is computed from."""
    column, label = shown
    upstream = layout.upstream(row.setting, row.id, planned).values()
    records = [cell.record for cell in upstream if cell.record]  # of measurements that no job of the run makes
    reads = [read for cell in upstream for read in cell.reads]
    numbers = shown_in(table, row.setting, row.id, column)
    lines = [f"shows {numbers}"] if numbers else []
    if row.reported_only:
        lines.append(f"copied from {row.reported_only}: nothing was run")
    elif not reads and not records:
        lines.append("the cell has no number of ours")
    lines += [f"recorded in {path}, sha256 {sha256(Path(path))}: no job of the run makes it" for path in records]
    setting = f" [{row.setting}]" if row.setting else ""
    address = {"table": table, "row": row.id, "setting": row.setting, "column": column, "records": records}
    return Explanation(f"{table}: {row.label}{setting}, {label}", lines, reads, address)


def shown_in(table: str, setting: str, row: str, column: str) -> str:
    """What the table's CSV has of a cell, reported and reproduced, or nothing if the table is not made."""
    path = Path(f"{TABLES}{table}.csv")
    lines = read_rows(path, "setting", "row", "column", *SHOWN.values()) if path.is_file() else []
    found = [line for line in lines if (line["setting"], line["row"], line["column"]) == (setting, row, column)]
    return ", ".join(f"{name} {line[each]}" for line in found for name, each in SHOWN.items() if line[each])

"""A table of the report: its sheet, with a link from every number to its explanation."""

from collections.abc import Iterator
from html import escape

from encore.plan.tables.layout import Column, Row
from encore.report import explanations
from encore.report.markup import Html, code, scrolling
from encore.report.published_tables import PAPERS, PublishedTable, paper_of
from encore.report.records import ArtifactRecords
from encore.report.slice import RESULTS, ReportSlice
from encore.reporting.tables.sheet import SheetEntry


def table_section(shown: PublishedTable, records: ArtifactRecords, site: ReportSlice) -> str:
    """The table under its heading, with its notes and, below, what stands behind each number."""
    own = paper_of(shown.name)
    state = "made" if shown.made else "printed"
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in shown.sheet.header)
    body = "".join(_blocks(shown))
    title = escape(shown.sheet.title)
    table = f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead>{body}</table>"
    notes = "".join(f"<li>{escape(note)}</li>" for note in shown.sheet.notes)
    target = f"{RESULTS}/tables/{shown.name}.csv"
    missing = f"<p>Not run: what the paper prints. To make it: {code(site.command(target)).markup}</p>"
    files = f"<p>Made: {code(target).markup}, and next to it as .md, .tex, .html.</p>"
    details = "".join(explanations.cell_explanations(shown, records, site))
    return (
        f'<section class="item table" id="{shown.place}" data-paper="{own}" data-state="{state}">'
        f"<h3>{escape(PAPERS.get(own, own))}: {escape(shown.number)}</h3>"
        f"{scrolling(shown.sheet.title, table)}{f'<ul class=notes>{notes}</ul>' if notes else ''}"
        f"{files if shown.made else missing}</section>{details}"
    )


def _blocks(shown: PublishedTable) -> Iterator[str]:
    for setting, block in zip(shown.layout.settings(), shown.sheet.blocks, strict=True):
        rows = [row for row in shown.layout.rows if row.setting == setting]
        width = len(shown.sheet.header)
        title = f'<tr class="setting"><th scope="rowgroup" colspan="{width}">{escape(setting)}</th></tr>'
        lines = "".join(_line(shown, row, line) for row, line in zip(rows, block.lines, strict=True))
        yield f"<tbody>{title if setting else ''}{lines}</tbody>"


def _line(shown: PublishedTable, row: Row, line: list[SheetEntry]) -> str:
    """A row; what stands behind the columns, a difference and its verdict, is about the primary one."""
    columns = shown.layout.shown()
    primary = next((column for column in columns if column.primary), None)
    values = "".join(_cell(shown, row, column, entry) for entry, column in zip(line[1:], columns, strict=False))
    values += "".join(_cell(shown, row, primary, entry, more=True) for entry in line[1 + len(columns) :])
    return f'<tr class="row"><th scope="row">{escape(line[0].text)}</th>{values}</tr>'


def _cell(shown: PublishedTable, row: Row, column: Column | None, entry: SheetEntry, *, more: bool = False) -> str:
    content = _numbers(entry, bare=not shown.made)
    if not entry.text or column is None or not explanations.has_explanation(shown, row, column):
        return f"<td>{content.markup}</td>"
    place = explanations.cell_place(shown, row, column)
    name = "" if more else f'id="c{place}" '
    return f'<td><a class="n" {name}href="#w{place}">{content.markup}</a></td>'


def _numbers(entry: SheetEntry, *, bare: bool) -> Html:
    """Ours and, apart from it, what the paper prints."""
    ours, parenthesis, theirs = ("", "", entry.text) if bare else entry.text.partition("(")
    text = escape(ours.strip())
    shown = f"<b>{text}</b>" if entry.bold and text else text
    shown += f"<sup>{escape(entry.marker)}</sup>" if entry.marker else ""
    return Html(shown + (f' <i class="p">{parenthesis}{escape(theirs)}</i>' if theirs else ""))

"""A table as one HTML page: no script, no network, readable on a phone and on paper."""

from html import escape

from encore.reporting.tables.sheet import Sheet, SheetBlock, SheetEntry

_STYLE = """
:root { --ink: #1c2126; --soft: #5b6570; --line: #d9dee3; --band: #f4f6f8; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --soft: #9aa5b1; --line: #363d45; --band: #22272d; --page: #181c20; }
}
body { margin: 0 auto; padding: 1.5rem 1rem; max-width: 80rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; min-width: 100%; font-variant-numeric: tabular-nums; }
caption { caption-side: top; text-align: left; font-size: 1.15rem; font-weight: 600; padding-bottom: .75rem; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap; }
td:last-child { white-space: normal; min-width: 7rem; }
th:first-child { text-align: left; font-weight: 400; position: sticky; left: 0; background: var(--page); }
thead th { border-bottom: 2px solid var(--ink); font-weight: 600; vertical-align: bottom; }
tbody tr + tr > * { border-top: 1px solid var(--line); }
tbody .setting th { background: var(--band); color: var(--soft); font-style: italic; }
sup { line-height: 0; color: var(--soft); }
ul { max-width: 46rem; padding-left: 1.2rem; color: var(--soft); font-size: .87rem; }
@media (max-width: 40rem) { body { padding: 1rem .5rem; font-size: 13px; } th, td { padding: .3rem .45rem; } }
@media print { body { max-width: none; font-size: 10px; } .scroll { overflow: visible; } }
"""


def render_html(sheet: Sheet) -> str:
    """A whole page with the table, its caption and its notes."""
    header = "".join(f'<th scope="col">{escape(title)}</th>' for title in sheet.header)
    body = "\n".join(_block(block, len(sheet.header)) for block in sheet.blocks)
    notes = "\n".join(f"<li>{escape(note)}</li>" for note in sheet.notes)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(sheet.title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<div class="scroll">
<table>
<caption>{escape(sheet.title)}</caption>
<thead><tr>{header}</tr></thead>
{body}
</table>
</div>
<ul>
{notes}
</ul>
</body>
</html>
"""


def _block(block: SheetBlock, columns: int) -> str:
    title = f'<tr class="setting"><th scope="rowgroup" colspan="{columns}">{escape(block.title)}</th></tr>'
    lines = "\n".join(f"<tr>{_line(line)}</tr>" for line in block.lines)
    return f"<tbody>\n{title}\n{lines}\n</tbody>" if block.title else f"<tbody>\n{lines}\n</tbody>"


def _line(line: list[SheetEntry]) -> str:
    label, *values = line
    return f'<th scope="row">{escape(label.text)}</th>' + "".join(f"<td>{_entry(entry)}</td>" for entry in values)


def _entry(entry: SheetEntry) -> str:
    text = escape(entry.text)
    bold = f"<strong>{text}</strong>" if entry.bold and text else text
    return bold + (f"<sup>{escape(entry.marker)}</sup>" if entry.marker else "")

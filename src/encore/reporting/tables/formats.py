"""Every format of a table, written beside one another: data (JSON), tidy CSV, Markdown, LaTeX and HTML."""

from pathlib import Path

from encore.plan.tables.layout import Layout
from encore.reporting.tables import html, latex, markdown, reproduction, tidy
from encore.reporting.tables.compute import compute_table
from encore.reporting.tables.sheet import make_sheet
from encore.reporting.tables.table import Table, write_table
from encore.storage.files import write_text

FORMATS = ("csv", "json", "md", "tex", "html")


def write_formats(folder: Path, layout: Layout, released: Path) -> Table:
    """Compute a table and write ``<name>.csv``, ``.json``, ``.md``, ``.tex`` and ``.html``; equal numbers, equal bytes.

    Args:
        released: the CSV that says how close runs are to released ones, for a table that names such.

    Raises:
        EncoreError: scores are missing, lack a measure, or cannot be compared.
    """
    table = compute_table(layout, reproduction.reproduction_notes(released, layout))
    shown = make_sheet(table)
    write_table(folder / f"{layout.name}.json", table)
    tidy.write_tidy(folder / f"{layout.name}.csv", table)
    write_text(folder / f"{layout.name}.md", markdown.render_markdown(shown))
    write_text(folder / f"{layout.name}.tex", latex.render_latex(shown))
    write_text(folder / f"{layout.name}.html", html.render_html(shown))
    return table

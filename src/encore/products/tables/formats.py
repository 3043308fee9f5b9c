"""The formats of a table, in one folder: its data, tidy CSV, Markdown, LaTeX and HTML.

Markdown, LaTeX and HTML are the templates of ``templates/``, which get the table and nothing else.
"""

from functools import cache
from pathlib import Path
from typing import Any

from encore.products.tables import aligned_text, tidy
from encore.products.tables.compute import compute_table
from encore.products.tables.layout import Layout
from encore.products.tables.table import Table, write_table
from encore.storage.files import write_text

TEMPLATES = Path(__file__).parent / "templates"
PAGES = ("md", "tex", "html")
TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "`": r"\textasciigrave{}",
    **{character: f"${character}$" for character in "<>|"},
    "[": "{[}",  # after a line's end it would be read as its space
    "±": r"$\pm$",
    "−": "$-$",
    "≠": r"$\neq$",
    **{raised: rf"\textsuperscript{{{plain}}}" for raised, plain in zip("¹²³⁴⁵", "12345", strict=True)},
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "→": r"$\to$",
    "Δ": r"$\Delta$",
    "–": "--",
    "—": "---",
    "’": "'",
    "“": "``",
    "”": "''",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "¶": r"\P{}",
    "‖": r"$\|$",
}


def write_formats(folder: Path, layout: Layout, _: Path) -> str:
    """Compute a table and write every format of it, ``<name>.<ending>``; equal numbers give equal bytes."""
    table = compute_table(layout)
    write_table(folder / f"{layout.name}.json", table)
    tidy.write_tidy(folder / f"{layout.name}.csv", table)
    for ending in PAGES:
        write_text(folder / f"{layout.name}.{ending}", render(table, ending))
    return f"table {layout.name}: {len(table.rows) * len(table.columns)} cells in {folder}"


def render(table: Table, ending: str) -> str:
    """A table as Markdown (``md``), as a ``table*`` of LaTeX (``tex``) or as a whole page of HTML (``html``)."""
    lines = aligned_text.aligned(table, aligned_text.MARKDOWN) if ending == "md" else []
    page: str = _environment(ending).get_template(f"table.{ending}.j2").render(table=table, lines=lines)
    return page


def tex(content: str) -> str:
    """Text with every character that LaTeX would read as a command, or that its fonts may lack, written out."""
    return "".join(TEX.get(character, character) for character in content)


@cache
def _environment(ending: str) -> Any:
    """What templates of one ending are rendered with; only those of HTML escape by themselves."""
    import jinja2  # which planning does not need

    options: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    if ending == "tex":  # whose braces are its own
        options |= {"block_start_string": "<%", "block_end_string": "%>", "comment_start_string": "<#"}
        options |= {"comment_end_string": "#>", "variable_start_string": "<<", "variable_end_string": ">>"}
    loader, undefined = jinja2.FileSystemLoader(TEMPLATES), jinja2.StrictUndefined
    environment = jinja2.Environment(loader=loader, undefined=undefined, autoescape=ending == "html", **options)
    environment.filters |= {"plain": aligned_text.plain, "tex": tex}
    return environment

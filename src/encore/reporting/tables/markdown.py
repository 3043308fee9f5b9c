"""A table as Markdown, aligned so that a terminal shows it as well as a browser."""

import re
from pathlib import Path

from encore.errors import EncoreError
from encore.reporting.tables.sheet import Sheet, SheetEntry

_BOLD = re.compile(r"\*\*(.+?)\*\*([^ |]*)")
_SETTING = re.compile(r"^\| \*(.+?)\*", re.MULTILINE)


def render_markdown(sheet: Sheet) -> str:
    """The table with its caption above and its notes below."""
    rows = [[_plain(title) for title in sheet.header]]
    tails = [_tail([line[column] for block in sheet.blocks for line in block.lines]) for column in range(len(rows[0]))]
    for block in sheet.blocks:
        rows += [[f"*{_plain(block.title)}*", *[""] * (len(sheet.header) - 1)]] if block.title else []
        rows += [[_shown(entry, tail) for entry, tail in zip(line, tails, strict=True)] for line in block.lines]
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(sheet.header))]
    rule = "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])])
    lines = [_line(row, widths) for row in rows]
    notes = [f"- {_plain(note)}" for note in sheet.notes]
    return "\n".join([f"**{_plain(sheet.title)}**", "", lines[0], f"|{rule}|", *lines[1:], "", *notes, ""])


def show_table(folder: Path, name: str, *, bold: str = "\033[1m{}\033[0m") -> str:
    """What ``make demo`` prints: the table, and where its files lie. ``bold`` is how a terminal sets bold ("{}": not).

    Raises:
        EncoreError: the table has not been made.
    """
    path = folder / f"{name}.md"
    if not path.is_file():
        raise EncoreError(f"{path} is missing; run `snakemake {folder / name}.csv --profile local` first")
    title, table = path.read_text().split("\n", 1)
    table = _BOLD.sub(lambda match: f"  {bold.format(match[1])}{match[2]}  ", table)  # as wide as it was
    table = _SETTING.sub(lambda match: f"| {bold.format(match[1])}  ", table)
    files = [str(folder / f"{name}.{ending}") for ending in ("csv", "json", "md", "tex", "html")]
    return "\n".join([bold.format(title.strip("*")), table.replace("\\", ""), *files, ""])


def _line(row: list[str], widths: list[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    return "| " + " | ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]) + " |"


def _tail(column: list[SheetEntry]) -> int:
    """Characters to keep free after the last digit, so that digits stand below each other."""
    return max((2 * entry.bold + len(entry.marker) for entry in column), default=0)


def _shown(entry: SheetEntry, tail: int) -> str:
    text = _plain(entry.text)
    used = 2 * entry.bold + len(entry.marker)
    return (f"**{text}**" if entry.bold and text else text) + entry.marker + " " * (tail - used)


def _plain(text: str) -> str:
    """Escape what Markdown would take for markup."""
    return re.sub(r"([\\|*_<>`])", r"\\\1", text)

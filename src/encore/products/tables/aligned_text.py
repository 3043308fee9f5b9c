"""A table as text in aligned columns: Markdown, and what a terminal shows."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from encore.errors import EncoreError
from encore.products.tables.table import FORMATS, Entry, Table, read_table
from encore.storage.typed import snakemake

TERMINAL_BOLD = "\033[1m{}\033[0m"


class Style(NamedTuple):
    """How text, what is best and the name of a group are marked; marks of one kind are as wide in every style."""

    plain: Callable[[str], str]
    best: str
    group: str
    hidden: int = 0  # characters of a mark that a terminal does not show


def plain(text: str) -> str:
    """Escape what Markdown would take for markup."""
    return re.sub(r"([\\|*_<>`])", r"\\\1", text)


MARKDOWN = Style(plain, "**{}**{}", "*{}*")


def show_table(folder: Path, name: str, *, bold: str = TERMINAL_BOLD, run: str = "") -> str:
    """What ``encore show`` prints: the table, and the paths of its files.

    Args:
        bold: how a terminal sets bold; "{}" where it cannot.
        run: the run's file, as commands name it.
    """
    if not (folder / f"{name}.json").is_file():
        make = snakemake(f"{folder / name}.csv", run=run)
        raise EncoreError(f"{folder / name}.json is missing; run `{make}` first")
    table = read_table(folder / f"{name}.json")
    is_bold = bold != "{}"
    best = f"  {bold}{{}}  " if is_bold else "  {}*{} "
    lines = aligned(table, Style(str, best, f"{bold}  ", len(bold) - len("{}")))
    told = (*table.footnotes, *table.notes)
    notes = [f"- {note if is_bold else note.replace('Bold: the best', '*: the best')}" for note in told]
    files = [str(folder / f"{name}.{ending}") for ending in FORMATS]
    return "\n".join([bold.format(table.title), "", *lines, "", *notes, "", *files, ""])


def aligned(table: Table, style: Style) -> list[str]:
    """The lines of the table, of one width, digits below each other: the header, a rule, the rows of each group."""
    header = table.header()
    groups = [(setting, [(row.label, table.entries(row)) for row in rows]) for setting, rows in table.groups()]
    columns = list(zip(*(entries for _, rows in groups for _, entries in rows), strict=True))
    tails = [max(map(_tail, column)) for column in columns]
    lines: list[list[tuple[str, int]]] = [[(style.plain(title), 0) for title in header]]
    for setting, rows in groups:
        if setting:
            lines.append([(style.group.format(style.plain(setting)), style.hidden), *[("", 0)] * (len(header) - 1)])
        for label, entries in rows:
            shown = [_shown(entry, tail, style) for entry, tail in zip(entries, tails, strict=True)]
            lines.append([(style.plain(label), 0), *shown])
    widths = [max(3, *(len(text) - hidden for text, hidden in column)) for column in zip(*lines, strict=True)]
    rule = "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])])
    head, *body = (_line(line, widths) for line in lines)
    return [head, f"|{rule}|", *body]


def _line(line: list[tuple[str, int]], widths: list[int]) -> str:
    (label, hidden), *others = line
    cells = [text.rjust(width + more) for (text, more), width in zip(others, widths[1:], strict=True)]
    return "| " + " | ".join([label.ljust(widths[0] + hidden), *cells]) + " |"


def _tail(entry: Entry) -> int:
    """Characters behind the last digit."""
    return 2 * entry.best + len(entry.markers)


def _shown(entry: Entry, tail: int, style: Style) -> tuple[str, int]:
    """A cell with room behind its last digit for the longest tail of its column, and how much of it is hidden."""
    text, room = style.plain(entry.text), " " * (tail - _tail(entry))
    if not entry.best:
        return text + entry.markers + room, 0
    return style.best.format(text, entry.markers) + room, style.hidden

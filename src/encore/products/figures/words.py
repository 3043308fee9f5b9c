"""The first pieces that representations of one text name: a column a system, each piece marked if the text has it."""

import textwrap
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Page

from encore.products.figures import style
from encore.products.figures.base import InspectionsSlice, caption, read_inspection, refuse_nothing, row_names
from encore.products.figures.style import BAND, INK, SOFT
from encore.storage.csv_rows import number, write_rows

HIT, MISS = "#0072b2", "#b04a00"
HEADER = ["label", "system", "seed", "place", "piece", "hit", "logit"]
COLUMN, STEP = 1.75, 0.2  # inches


class WordsSlice(InspectionsSlice):
    """What the figure is made of."""

    top: int


def draw_words(folder: Path, figure: WordsSlice) -> None:
    """Write ``<name>.png``, ``.svg`` and ``.csv``; equal pieces give equal bytes.

    Raises:
        EncoreError: there is nothing to draw, or an inspection is missing.
    """
    refuse_nothing(figure, figure.rows)
    found = [read_inspection(row.inspections[0]) for row in figure.rows]
    rows = [
        [*row_names(row), str(place), each["piece"], str(int(each["hit"])), number(each["logit"])]
        for row, result in zip(figure.rows, found, strict=True)
        for place, each in enumerate(result["pieces"], 1)
    ]
    write_rows(folder / f"{figure.name}.csv", HEADER, rows)
    with style.style():
        style.save(_page(figure, found), folder, figure.name)


def _page(figure: WordsSlice, found: list[dict[str, Any]]) -> Page:
    width = max(COLUMN * len(found) + 0.3, 6.5)
    heading, below = style.wrapped(width, figure.title, caption(figure, _says(figure, found)))
    top, strip = style.margins(heading, below)
    titles = [textwrap.wrap(row.label, 22) for row in figure.rows]
    table = STEP * (figure.top + 1.2 + max(map(len, titles)))
    height = top + table + strip
    drawn = Page(figsize=(width, height))
    for place, (result, title) in enumerate(zip(found, titles, strict=True)):
        span = 1 / len(found)
        axis = drawn.add_axes((place * span + 0.01, strip / height, span - 0.02, table / height))
        _column(axis, result["pieces"], title, figure.top, max(map(len, titles)))
    style.write_around(drawn, heading, below)
    return drawn


def _column(axis: Axes, pieces: list[dict[str, Any]], title: list[str], top: int, lines: int) -> None:
    axis.set_axis_off()
    axis.set_xlim(0, 1)
    axis.set_ylim(top + 0.8, -lines - 0.4)
    axis.text(0.02, -0.55, "\n".join(title), fontsize=9.5, fontweight="bold", color=INK, va="bottom", linespacing=1.15)
    hits = sum(each["hit"] for each in pieces)
    for place, each in enumerate(pieces):
        if place % 2 == 0:
            axis.axhspan(place - 0.5, place + 0.5, color=BAND, linewidth=0, zorder=0)
        colour = HIT if each["hit"] else MISS
        axis.text(0.02, place, "✓" if each["hit"] else "✗", fontsize=9, color=colour, va="center_baseline")
        weight = "bold" if each["hit"] else "normal"
        shown = each["piece"] if len(each["piece"]) <= 15 else each["piece"][:14] + "…"
        axis.text(
            0.15, place, shown, fontsize=9, color=INK if each["hit"] else SOFT, va="center_baseline", weight=weight
        )
    axis.text(0.02, top, f"{hits} of {len(pieces)} in the text", fontsize=8, color=SOFT, va="center_baseline")


def _says(figure: WordsSlice, found: list[dict[str, Any]]) -> str:
    text = f"✓ stands in the text, ✗ does not. The text, from {figure.dataset}: “{found[0]['text']}”"
    text += "" if found[0]["text"].endswith(".") else "."
    bare = [row.label for row, one in zip(figure.rows, found, strict=True) if one["head"] == "embeddings"]
    if bare:
        text += f" No whole vocabulary head, so the product with the word embeddings (Eq. 11): {', '.join(bare)}."
    return text

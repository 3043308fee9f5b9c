"""The first pieces that representations of one text name: a column a system, each piece marked if the text has it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Literal

from encore.config.validation import Positive
from encore.products.figures import inspected, style
from encore.products.figures.base import DRAWN, FigureContent, FigureKind
from encore.products.figures.style import BAND, INK, SOFT
from encore.storage.csv_rows import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Page

    from encore.plan.plan import Plan

HIT, MISS = "#0072b2", "#b04a00"
COLUMNS = DRAWN | {
    "place": "Rank of the piece, from 1.",
    "piece": "The word piece.",
    "hit": "1 where the text has it.",
    "logit": "Its score.",
}
COLUMN, STEP = 1.75, 0.2  # inches


class WordsFigure(inspected.InspectedEntry):
    """An entry of a figure of first pieces."""

    kind: Literal["words"]
    length: Positive = 144
    example: inspected.ExampleEntry = inspected.ExampleEntry()
    top: Positive = 20
    head: Literal["start", "own"] = "start"


class WordsSlice(inspected.InspectionsSlice):
    """What the figure is drawn from."""

    top: int


def plan_words(plan: Plan, figure: WordsFigure) -> FigureContent:
    """Every system under the first seed."""
    what = {"top": figure.top, "head": figure.head, **figure.example.rule()}
    return inspected.inspected_texts(plan, figure, what, plan.config.seeds[:1], top=figure.top)


def draw_words(figure: WordsSlice) -> tuple[list[list[str]], Page]:
    """A line a piece; a column a system."""
    found = figure.first()
    lines = [
        [*row.names(), str(place), each["piece"], str(int(each["hit"])), number(each["logit"])]
        for row, result in zip(figure.rows, found, strict=True)
        for place, each in enumerate(result["pieces"], 1)
    ]
    says = f"✓ stands in the text, ✗ does not. The text, from {figure.dataset}: “{found[0]['text']}”"
    says += "" if found[0]["text"].endswith(".") else "."
    titles = [textwrap.wrap(row.label, 22) for row in figure.rows]
    longest = max(map(len, titles))
    table, width = STEP * (figure.top + 1.2 + longest), max(COLUMN * len(found) + 0.3, 6.5)
    page = style.page(width, table, figure.title, figure.caption(says, inspected.without_head(figure, found)))
    height = page.figure.get_figheight()
    for place, (result, title) in enumerate(zip(found, titles, strict=True)):
        span = 1 / len(found)
        axis = page.figure.add_axes((place * span + 0.01, page.bottom / height, span - 0.02, table / height))
        _column(axis, result["pieces"], title, figure.top, longest)
    return lines, page.figure


def _column(axis: Axes, pieces: list[dict[str, Any]], title: list[str], top: int, lines: int) -> None:
    axis.set_axis_off()
    axis.set_xlim(0, 1)
    axis.set_ylim(top + 0.8, -lines - 0.4)
    axis.text(0.02, -0.55, "\n".join(title), fontsize=9.5, fontweight="bold", color=INK, va="bottom", linespacing=1.15)
    for place, each in enumerate(pieces):
        if place % 2 == 0:
            axis.axhspan(place - 0.5, place + 0.5, color=BAND, linewidth=0, zorder=0)
        mark, colour, ink, weight = ("✓", HIT, INK, "bold") if each["hit"] else ("✗", MISS, SOFT, "normal")
        axis.text(0.02, place, mark, fontsize=9, color=colour, va="center_baseline")
        shown = each["piece"] if len(each["piece"]) <= 15 else each["piece"][:14] + "…"
        axis.text(0.15, place, shown, fontsize=9, color=ink, va="center_baseline", weight=weight)
    hits = sum(each["hit"] for each in pieces)
    axis.text(0.02, top, f"{hits} of {len(pieces)} in the text", fontsize=8, color=SOFT, va="center_baseline")


KIND = FigureKind(WordsFigure, plan_words, WordsSlice, COLUMNS, draw_words)

"""A text whose words are coloured by what a decoder says of them; a decoder's highest word is 1."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Page
from matplotlib.patches import Rectangle

from encore.products.figures import style
from encore.products.figures.base import InspectionsSlice, caption, read_inspection, refuse_nothing, row_names
from encore.products.figures.style import INK, SOFT
from encore.storage.csv_rows import number, write_rows

HEADER = ["label", "system", "seed", "place", "word", "probability", "relative", "bin"]
# Light to dark in one hue, from 0 to above 0.5 in steps of a tenth, as the paper's bins.
SHADES = ("#f3f6f9", "#d6e5f2", "#a9cce6", "#6fabd6", "#3784bf", "#0b5394")
STEP = 0.1
WIDTH, MARGIN, LINE, SIZE = 8.6, 0.2, 0.3, 10.5  # inches, inches, inches, points


class HeatSlice(InspectionsSlice):
    """What the figure is made of."""


def draw_heat(folder: Path, figure: HeatSlice) -> None:
    """Write ``<name>.png``, ``.svg`` and ``.csv``; equal probabilities give equal bytes.

    Raises:
        EncoreError: there is nothing to draw, or an inspection is missing.
    """
    refuse_nothing(figure, figure.rows)
    found = [_shaded(read_inspection(row.inspections[0])["words"]) for row in figure.rows]
    rows = [
        [
            *row_names(row),
            str(place),
            each["word"],
            number(each["probability"]),
            number(each["relative"]),
            str(each["bin"]),
        ]
        for row, words in zip(figure.rows, found, strict=True)
        for place, each in enumerate(words, 1)
    ]
    write_rows(folder / f"{figure.name}.csv", HEADER, rows)
    with style.style():
        style.save(_page(figure, found), folder, figure.name)


def binned(relative: float) -> int:
    """Which of the paper's bins a value is in: 0 to 0.1, … 0.4 to 0.5, above 0.5."""
    return min(int(relative / STEP + 1e-9), len(SHADES) - 1)


def _shaded(words: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Words with their value relative to the highest in the text, and its bin."""
    highest = max(each["probability"] for each in words)
    relative = [each["probability"] / highest for each in words]
    return [each | {"relative": r, "bin": binned(r)} for each, r in zip(words, relative, strict=True)]


def _page(figure: HeatSlice, found: list[list[dict[str, Any]]]) -> Page:
    says = "A word’s colour is the decoder’s probability of its pieces together, divided by the highest in the text: a"
    says += " distribution over the whole vocabulary cannot give half of itself to several words."
    heading, below = style.wrapped(WIDTH, figure.title, caption(figure, says))
    top, strip = style.margins(heading, below)
    places = [_laid([each["word"] for each in words]) for words in found]
    lines = sum(own[-1][1] + 2 for own in places) if len(found) > 1 else places[0][-1][1] + 1
    height = top + LINE * (lines + 2.2) + strip
    drawn = Page(figsize=(WIDTH, height))
    axis = drawn.add_axes((0, strip / height, 1, (height - top - strip) / height))
    axis.set_axis_off()
    axis.set_xlim(0, WIDTH)
    axis.set_ylim(lines + 1.9, -0.3)
    line = 0
    for row, words, own in zip(figure.rows, found, places, strict=True):
        if len(found) > 1:
            axis.text(MARGIN, line + 0.5, row.label, fontsize=9.5, fontweight="bold", va="center", color=INK)
            line += 1
        for each, (x, below_first, wide) in zip(words, own, strict=True):
            _word(axis, each, x, line + below_first, wide)
        line += own[-1][1] + 1
    _key(axis, line + 0.6)
    style.write_around(drawn, heading, below)
    return drawn


def _laid(words: list[str]) -> list[tuple[float, int, float]]:
    """Where each word stands (x in inches, line) and how wide it is, broken into lines of the page's width."""
    canvas = FigureCanvasAgg(Page(figsize=(WIDTH, 1), dpi=72))
    renderer: Any = canvas.get_renderer()
    found, x, line = [], MARGIN, 0
    for word in words:
        text = canvas.figure.text(0, 0, word, fontsize=SIZE)
        wide = text.get_window_extent(renderer).width / 72 + 0.1
        if x + wide > WIDTH - MARGIN and x > MARGIN:
            x, line = MARGIN, line + 1
        found.append((x, line, wide))
        x += wide + 0.04
    return found


def _word(axis: Axes, word: dict[str, Any], x: float, line: float, wide: float) -> None:
    shade = SHADES[word["bin"]]
    axis.add_patch(Rectangle((x, line + 0.08), wide, 0.84, facecolor=shade, linewidth=0))
    ink = "white" if word["bin"] >= 4 else INK
    axis.text(x + wide / 2, line + 0.5, word["word"], fontsize=SIZE, ha="center", va="center_baseline", color=ink)


def _key(axis: Axes, line: float) -> None:
    """What each shade means."""
    for place, shade in enumerate(SHADES):
        label = f"{place * STEP:.1f}–{(place + 1) * STEP:.1f}" if place < len(SHADES) - 1 else "above 0.5"
        axis.add_patch(Rectangle((MARGIN + place * 1.15, line + 0.2), 0.25, 0.6, facecolor=shade, linewidth=0))
        axis.text(MARGIN + place * 1.15 + 0.32, line + 0.5, label, fontsize=8, va="center_baseline", color=SOFT)

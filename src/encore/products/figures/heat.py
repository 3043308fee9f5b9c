"""A text whose words are coloured by a decoder's probabilities; its highest word is 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from encore.config.validation import Positive
from encore.products.figures import style
from encore.products.figures.base import DRAWN, FigureContent, FigureKind
from encore.products.figures.inspected import ExampleEntry, InspectedEntry, InspectionsSlice, inspected_texts
from encore.products.figures.style import INK, SOFT
from encore.storage.csv_rows import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Page

    from encore.plan.plan import Plan

COLUMNS = DRAWN | {
    "place": "The word's place in the text.",
    "word": "The word.",
    "probability": "What the decoder gives it.",
    "relative": "The same, divided by the text's largest.",
    "bin": "Its colour, of those of the paper.",
}
# Light to dark in one hue, from 0 to above 0.5 in steps of a tenth, as the paper's bins.
SHADES = ("#f3f6f9", "#d6e5f2", "#a9cce6", "#6fabd6", "#3784bf", "#0b5394")
STEP = 0.1
WIDTH, MARGIN, LINE, SIZE = 8.6, 0.2, 0.3, 10.5  # inches, inches, inches, points
SAYS = (
    "A word’s colour is the decoder’s probability of its pieces together, divided by the highest in the text: a "
    "distribution over the whole vocabulary cannot give half of itself to several words."
)


class HeatFigure(InspectedEntry):
    """An entry of a coloured text."""

    kind: Literal["heat"]
    length: Positive = 512
    example: ExampleEntry = ExampleEntry()


def plan_heat(plan: Plan, figure: HeatFigure) -> FigureContent:
    """Every system under the first seed; its last step must train a decoder of words."""
    return inspected_texts(plan, figure, figure.example.rule(), plan.config.seeds[:1])


def draw_heat(figure: InspectionsSlice) -> tuple[list[list[str]], Page]:
    """A line a word; each system's words on lines of the page's width, and a key to the shades."""
    found = [_shaded(one["words"]) for one in figure.first()]
    data = [
        [*row.names(), str(place), each["word"], *values, str(each["bin"])]
        for row, words in zip(figure.rows, found, strict=True)
        for place, each in enumerate(words, 1)
        for values in [[number(each["probability"]), number(each["relative"])]]
    ]
    places = [_laid([each["word"] for each in words]) for words in found]
    lines = sum(own[-1][1] + 2 for own in places) if len(found) > 1 else places[0][-1][1] + 1
    page = style.page(WIDTH, LINE * (lines + 2.2), figure.title, figure.caption(SAYS))
    height = page.figure.get_figheight()
    axis = page.figure.add_axes((0, page.bottom / height, 1, (height - page.top - page.bottom) / height))
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
    return data, page.figure


def binned(relative: float) -> int:
    """Which of the paper's bins a value is in: 0 to 0.1, … 0.4 to 0.5, above 0.5."""
    return min(int(relative / STEP + 1e-9), len(SHADES) - 1)


def _shaded(words: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Words with their value relative to the highest in the text, and its bin."""
    highest = max(each["probability"] for each in words) or 1.0  # all are 0
    relative = [each["probability"] / highest for each in words]
    return [each | {"relative": r, "bin": binned(r)} for each, r in zip(words, relative, strict=True)]


def _laid(words: list[str]) -> list[tuple[float, int, float]]:
    """The place of each word (x in inches, line) and its width, broken into lines of the page's width."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    canvas = FigureCanvasAgg(Figure(figsize=(WIDTH, 1), dpi=72))
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
    from matplotlib.patches import Rectangle

    axis.add_patch(Rectangle((x, line + 0.08), wide, 0.84, facecolor=SHADES[word["bin"]], linewidth=0))
    ink = "white" if word["bin"] >= 4 else INK
    axis.text(x + wide / 2, line + 0.5, word["word"], fontsize=SIZE, ha="center", va="center_baseline", color=ink)


def _key(axis: Axes, line: float) -> None:
    """What each shade means."""
    from matplotlib.patches import Rectangle

    for place, shade in enumerate(SHADES):
        label = f"{place * STEP:.1f}–{(place + 1) * STEP:.1f}" if place < len(SHADES) - 1 else "above 0.5"
        axis.add_patch(Rectangle((MARGIN + place * 1.15, line + 0.2), 0.25, 0.6, facecolor=shade, linewidth=0))
        axis.text(MARGIN + place * 1.15 + 0.32, line + 0.5, label, fontsize=8, va="center_baseline", color=SOFT)


KIND = FigureKind(HeatFigure, plan_heat, InspectionsSlice, COLUMNS, draw_heat)

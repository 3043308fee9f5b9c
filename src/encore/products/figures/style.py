"""The look of all figures: fonts, colours, a heading above, a caption below, and files whose bytes repeat.

Planning imports this, and no matplotlib.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from encore.storage.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, BAND, GRID = "#1c2126", "#5b6570", "#f4f6f8", "#e3e7eb"
# Okabe and Ito's, darkened where they are too light for lines on white; shapes tell the same apart without colour.
COLOURS = ("#0072b2", "#d55e00", "#00836a", "#a3548c", "#b07d00", "#3c93c9", "#4d4d4d", "#7a5230")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "xtick.color": SOFT,
    "svg.hashsalt": "encore",  # otherwise the names inside an SVG change from run to run
    "svg.fonttype": "path",
    "text.parse_math": False,  # texts of collections have dollars
}


class Page(NamedTuple):
    """An empty page: its figure, and the inches that the heading at the top and the caption at the bottom take."""

    figure: Figure
    top: float
    bottom: float


def style() -> AbstractContextManager[None]:
    """Within it figures are drawn and saved."""
    import matplotlib

    return matplotlib.rc_context(STYLE)


def page(
    width: float,
    height: float,
    heading: str,
    caption: str,
    *,
    below: float = 0,
    right: float = 0,
    h_pad: float | None = None,
    wspace: float | None = None,
) -> Page:
    """A page with a heading and a caption, whose panels the layout engine places if ``wspace`` is given.

    Args:
        width: inches in all.
        height: inches between the heading and the caption, without ``below``.
        below: inches above the caption that panels leave free.
        right: inches on the right that panels leave free.
        h_pad: inches between panels.
        wspace: the same, as a share of a panel's width.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    above, under = textwrap.wrap(heading, int(width * 10)), textwrap.wrap(caption, int(width * 15))
    top, bottom = 0.15 + 0.2 * len(above), 0.2 + 0.155 * len(under) + below
    total = top + height + bottom
    figure = Figure(figsize=(width, total))
    if wspace is not None:
        rect = (0.005, bottom / total, 0.99 - right / width, 1 - bottom / total - top / total)
        figure.set_layout_engine(ConstrainedLayoutEngine(rect=rect, w_pad=0.08, h_pad=h_pad, wspace=wspace))
    bold: dict[str, Any] = {"fontsize": 12, "fontweight": "bold", "ha": "left", "va": "top"}
    figure.suptitle("\n".join(above), x=0.012, y=1 - 0.09 / total, **bold)
    small: dict[str, Any] = {"fontsize": 8, "color": SOFT, "ha": "left", "va": "bottom", "linespacing": 1.4}
    figure.text(0.012, 0.1 / total, "\n".join(under), **small)
    return Page(figure, top, bottom)


def line_look(place: int) -> dict[str, Any]:
    """What tells the line at a place of the legend from others."""
    return {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}


def legend_width(labels: Sequence[str]) -> float:
    """Inches that a legend next to the panels takes."""
    return 0.65 + 0.075 * max(map(len, labels))


def legend_beside(drawn: Page, axis: Axes) -> None:
    """Name the lines of a panel on the right of all, below the heading."""
    handles, labels = axis.get_legend_handles_labels()
    place = (0.995, 1 - drawn.top / drawn.figure.get_figheight())
    look: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "labelcolor": INK}
    drawn.figure.legend(handles, labels, loc="upper right", bbox_to_anchor=place, **look)


def plain_axis(axis: Axes) -> None:
    """Style a panel: light horizontal grid, no ticks, no upper and right spine."""
    axis.grid(axis="y", color=GRID, linewidth=0.7)
    axis.set_axisbelow(True)
    axis.tick_params(length=0, labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write ``<name>.png`` and ``<name>.svg``; equal figures give equal bytes."""
    if figure.get_layout_engine() is not None:
        # Lay panels out for good: what the layout engine solves differs in the last bits from one time to the next.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axis in figure.axes:
            left, bottom, width, height = (round(bound, 9) for bound in axis.get_position(original=True).bounds)
            axis.set_position((left, bottom, width, height))
    for ending, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        with replacing(folder / f"{name}.{ending}") as temporary:
            figure.savefig(temporary, format=ending, dpi=200, metadata=metadata, facecolor="white")

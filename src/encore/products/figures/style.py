"""What all figures share: fonts, colours, a heading above, a caption below, and files whose bytes repeat."""

import textwrap
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from encore.storage.files import replacing

INK, SOFT, BAND = "#1c2126", "#5b6570", "#f4f6f8"
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


def style() -> AbstractContextManager[None]:
    """Within it figures are drawn and saved."""
    return matplotlib.rc_context(STYLE)


def wrapped(width: float, heading: str, caption: str) -> tuple[list[str], list[str]]:
    """The lines of a heading and of a caption on a page of that width, in inches."""
    return textwrap.wrap(heading, int(width * 10)), textwrap.wrap(caption, int(width * 15))


def margins(heading: list[str], caption: list[str]) -> tuple[float, float]:
    """Inches that a heading takes at the top, and a caption at the bottom."""
    return 0.15 + 0.2 * len(heading), 0.2 + 0.155 * len(caption)


def engine(
    bottom: float, top: float, *, h_pad: float = 0.04167, wspace: float = 0.02, right: float = 0.0
) -> ConstrainedLayoutEngine:
    """A layout that leaves these shares of the height free, and ``right`` of the width; pads are inches, ``wspace`` a
    share of a panel's width."""
    rect = (0.005, bottom, 0.99 - right, 1 - bottom - top)
    return ConstrainedLayoutEngine(rect=rect, w_pad=0.08, h_pad=h_pad, wspace=wspace)


def write_around(figure: Figure, heading: list[str], caption: list[str]) -> None:
    """Write the heading and the caption into the margins."""
    height = figure.get_figheight()
    bold: dict[str, Any] = {"fontsize": 12, "fontweight": "bold", "ha": "left", "va": "top"}
    figure.suptitle("\n".join(heading), x=0.012, y=1 - 0.09 / height, **bold)
    small: dict[str, Any] = {"fontsize": 8, "color": SOFT, "ha": "left", "va": "bottom", "linespacing": 1.4}
    figure.text(0.012, 0.1 / height, "\n".join(caption), **small)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write ``<name>.png`` and ``<name>.svg``; equal figures give equal bytes."""
    _settle(figure)
    for ending, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        with replacing(folder / f"{name}.{ending}") as temporary:
            figure.savefig(temporary, format=ending, dpi=200, metadata=metadata, facecolor="white")


def _settle(figure: Figure) -> None:
    """Lay panels out for good: what the layout engine solves differs in the last bits from one time to the next."""
    if figure.get_layout_engine() is None:
        return
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axis in figure.axes:
        left, bottom, width, height = (round(bound, 9) for bound in axis.get_position(original=True).bounds)
        axis.set_position((left, bottom, width, height))

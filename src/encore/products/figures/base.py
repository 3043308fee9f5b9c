"""What all drawings share: what their slices say, colours that colour-blind eyes tell apart, captions, inspections."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Page

from encore.errors import EncoreError
from encore.products.figures.style import INK
from encore.products.slices import Product, SlicePart
from encore.products.tables.footnotes import PROXY_DATA
from encore.storage.typed import REMAKE

INSPECTION = "inspection.json"
GRID = "#e3e7eb"
# Okabe and Ito's, darkened where they are too light for lines on white; shapes tell the same apart without colour.
COLOURS = ("#0072b2", "#d55e00", "#00836a", "#a3548c", "#b07d00", "#3c93c9", "#4d4d4d", "#7a5230")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


class InspectedModel(SlicePart):
    """An inspection's folder, and the seed of the inspected model."""

    seed: int
    folder: str


class FigureRow(SlicePart):
    """A system with what was found in it."""

    label: str
    system: str
    inspections: list[InspectedModel] = []


class FigureSlice(Product):
    """What every slice of a figure says."""

    title: str
    notes: list[str] = []
    dataset: str


class InspectionsSlice(FigureSlice):
    """A figure of what inspections found."""

    rows: list[FigureRow]

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Folders of the inspections, of each the one file that is read."""
        return {Path(each.folder): (INSPECTION,) for row in self.rows for each in row.inspections}


def read_inspection(inspected: InspectedModel) -> dict[str, Any]:
    """What an inspection found.

    Raises:
        EncoreError: it is missing or damaged.
    """
    path = Path(inspected.folder) / INSPECTION
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise EncoreError(f"{path} is not readable ({error}); {REMAKE}") from error
    return found


def row_names(row: FigureRow, seed: int | None = None) -> list[str]:
    """The first fields of a CSV line about a system: label, lineage and seed (the first inspection's by default)."""
    return [row.label, row.system, str(row.inspections[0].seed if seed is None else seed)]


def caption(figure: FigureSlice, *says: str) -> str:
    """The caption: what the drawing knows, what the plan knows, and that data are stand-ins."""
    return " ".join([*filter(None, says), *figure.notes, *([PROXY_DATA] if figure.proxy_data else [])])


def refuse_nothing(figure: FigureSlice, rows: Sequence[Any]) -> None:
    """Refuse a figure without rows.

    Raises:
        EncoreError: there is nothing to draw.
    """
    if not rows:
        raise EncoreError(f"{figure.name}: none of its systems can be had under this run's configuration")


def legend_width(labels: Sequence[str]) -> float:
    """Inches that a legend next to the panels takes."""
    return 0.65 + 0.075 * max(map(len, labels))


def legend_beside(drawn: Page, axis: Axes, top: float) -> None:
    """Name the lines of a panel on the right of all, below the heading, which takes ``top`` inches."""
    handles, labels = axis.get_legend_handles_labels()
    place = (0.995, 1 - top / drawn.get_figheight())
    drawn.legend(handles, labels, loc="upper right", bbox_to_anchor=place, frameon=False, fontsize=8.5, labelcolor=INK)


def plain_axis(axis: Axes) -> None:
    """Style a panel: light horizontal grid, no ticks, no upper and right spine."""
    axis.grid(axis="y", color=GRID, linewidth=0.7)
    axis.set_axisbelow(True)
    axis.tick_params(length=0, labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)

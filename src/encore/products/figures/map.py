"""A query among its candidates on a map of each system: what is relevant to it, and the first ranks."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Page

from encore.products.figures import style
from encore.products.figures.base import InspectionsSlice, caption, read_inspection, refuse_nothing, row_names
from encore.products.figures.style import INK, SOFT
from encore.storage.csv_rows import number, write_rows

HEADER = ["label", "system", "seed", "query", "name", "kind", "rank", "x", "y"]
# In the order in which they are drawn, the last on top.
LOOKS: dict[str, dict[str, Any]] = {
    "candidate": {"marker": "o", "s": 22, "color": "#9fb4c4", "linewidths": 0, "label": "candidate"},
    "relevant": {"marker": "*", "s": 170, "color": "#d55e00", "edgecolors": "white", "label": "relevant"},
    "query": {"marker": "D", "s": 62, "color": "#0b3c5d", "edgecolors": "white", "label": "query"},
}


class MapSlice(InspectionsSlice):
    """What the figure is made of."""

    split: str
    perplexity: float


def draw_map(folder: Path, figure: MapSlice) -> None:
    """Write ``<name>.png``, ``.svg`` and ``.csv``; equal places give equal bytes.

    Raises:
        EncoreError: there is nothing to draw, or an inspection is missing.
    """
    refuse_nothing(figure, figure.rows)
    found = [read_inspection(row.inspections[0]) for row in figure.rows]
    rows = [
        [*row_names(row), result["query"], each["name"], each["kind"], rank, number(each["x"]), number(each["y"])]
        for row, result in zip(figure.rows, found, strict=True)
        for each in result["points"]
        for rank in ["" if each["rank"] is None else str(each["rank"])]
    ]
    write_rows(folder / f"{figure.name}.csv", HEADER, rows)
    with style.style():
        style.save(_page(figure, found), folder, figure.name)


def _page(figure: MapSlice, found: list[dict[str, Any]]) -> Page:
    width = 0.4 + 3.7 * max(len(found), 2)
    heading, below = style.wrapped(width, figure.title, caption(figure, _says(figure, found)))
    top, strip = style.margins(heading, below)
    strip += 0.3  # the legend stands above the caption
    height = top + 3.9 + strip
    drawn = Page(figsize=(width, height), layout=style.engine(strip / height, top / height, wspace=0.04))
    axes = drawn.subplots(1, len(found), squeeze=False)
    for axis, row, result in zip(axes[0], figure.rows, found, strict=True):
        _panel(axis, row.label, result["points"])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    look: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "labelcolor": INK}
    place = (0.005, (strip - 0.35) / height)
    drawn.legend(handles, labels, loc="lower left", bbox_to_anchor=place, ncols=3, **look)
    style.write_around(drawn, heading, below)
    return drawn


def _panel(axis: Axes, label: str, points: list[dict[str, Any]]) -> None:
    """Distances have a meaning only within a panel, so its axes have no numbers."""
    for order, (kind, look) in enumerate(LOOKS.items()):
        own = [point for point in points if point["kind"] == kind]
        axis.scatter([each["x"] for each in own], [each["y"] for each in own], zorder=2 + order, **look)
    ranks = [each["rank"] for each in points if each["kind"] == "relevant"]
    first = min((rank for rank in ranks if rank is not None), default=None)
    summary = f"relevant: {len(ranks)}, the best at " + (f"rank {first:,}" if first else "no rank of the run")
    axis.set_title(label, loc="left", fontsize=10.5, fontweight="bold", color=INK)
    axis.set_title(summary, loc="right", fontsize=8, color=SOFT)
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set_color("#d5dbe0")


def _says(figure: MapSlice, found: list[dict[str, Any]]) -> str:
    text = f"Query {found[0]['query']} of {figure.dataset}, split {figure.split}: “{found[0]['text']}”; the first of a "
    text += f"random order, chosen before any model was run. t-SNE of vectors, perplexity {figure.perplexity:g}; "
    return text + "each system’s own candidates, and what is relevant."

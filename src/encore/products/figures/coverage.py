"""How many of a text's pieces representations name: over the text's pieces (Algorithm 1), and over k (the caption)."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Page
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

from encore.evaluation.scores import exact_mean
from encore.products.figures import style
from encore.products.figures.base import (
    COLOURS,
    MARKERS,
    InspectionsSlice,
    caption,
    legend_beside,
    legend_width,
    plain_axis,
    read_inspection,
    refuse_nothing,
    row_names,
)
from encore.products.figures.style import INK, SOFT
from encore.storage.csv_rows import number, write_rows

SHARES = {"of_text": "of the text’s pieces (Algorithm 1)", "of_top": "of the k pieces (the paper’s caption)"}
HEADER = ["label", "system", "seed", "dataset", "texts", "pieces", "head", "k", "of_text", "of_top", "error"]


class CoverageSlice(InspectionsSlice):
    """What the figure is made of."""

    ks: list[int]


def draw_coverage(folder: Path, figure: CoverageSlice) -> None:
    """Write ``<name>.png``, ``.svg`` and ``.csv``; equal numbers give equal bytes.

    Raises:
        EncoreError: there is nothing to draw, or an inspection is missing.
    """
    refuse_nothing(figure, figure.rows)
    found = [[(inspected.seed, read_inspection(inspected)) for inspected in row.inspections] for row in figure.rows]
    rows = [
        [
            *row_names(row, seed),
            *about,
            str(value["k"]),
            *(number(value[name]) for name in ("of_text", "of_top", "error")),
        ]
        for row, inspections in zip(figure.rows, found, strict=True)
        for seed, result in inspections
        for about in [[figure.dataset, str(result["texts"]), number(result["pieces"]), result["head"]]]
        for value in result["values"]
    ]
    write_rows(folder / f"{figure.name}.csv", HEADER, rows)
    with style.style():
        style.save(_page(figure, [[result for _, result in inspections] for inspections in found]), folder, figure.name)


def _page(figure: CoverageSlice, found: list[list[dict[str, Any]]]) -> Page:
    legend = legend_width([row.label for row in figure.rows])
    width = 7.2 + legend
    heading, below = style.wrapped(width, figure.title, caption(figure, _says(figure, found)))
    top, strip = style.margins(heading, below)
    height = top + 3.0 + strip
    drawn = Page(
        figsize=(width, height), layout=style.engine(strip / height, top / height, wspace=0.05, right=legend / width)
    )
    axes = drawn.subplots(1, len(SHARES), squeeze=False)
    for axis, (name, says) in zip(axes[0], SHARES.items(), strict=True):
        for place, (row, inspections) in enumerate(zip(figure.rows, found, strict=True)):
            by_k = [[value[name] for value in result["values"]] for result in inspections]
            means = [exact_mean(values) for values in zip(*by_k, strict=True)]
            look = {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}
            axis.plot(figure.ks, means, linewidth=1.8, markersize=5, label=row.label, **look)
        axis.set_title(f"Share {says}", loc="left", fontsize=9.5, fontweight="bold", color=INK)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(FixedLocator(figure.ks))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axis.set_ylim(0, 1.05 * axis.dataLim.y1)
        axis.set_xlabel("k, first pieces that are looked at", color=SOFT, fontsize=8.5)
        plain_axis(axis)
    legend_beside(drawn, axes[0, 0], top)
    style.write_around(drawn, heading, below)
    return drawn


def _says(figure: CoverageSlice, found: list[list[dict[str, Any]]]) -> str:
    one = found[0][0]
    seeds = len(found[0])
    text = f"{one['texts']:,} texts of {figure.dataset}, {one['pieces']:.0f} different pieces each on average; "
    text += f"{seeds} seed{'s' * (seeds != 1)}. A text’s pieces are those that the model reads, special ones left out."
    bare = [
        row.label for row, inspections in zip(figure.rows, found, strict=True) if inspections[0]["head"] == "embeddings"
    ]
    if bare:
        text += f" No whole vocabulary head, so the product with the word embeddings (Eq. 11): {', '.join(bare)}."
    return text

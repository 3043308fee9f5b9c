"""How many of a text's pieces are among the first k that its representation names (BoW, Algorithm 1).

One panel divides by the text's pieces (the algorithm), the other by k (the caption of the paper's figure).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from encore.config.validation import Positive
from encore.plan.plan import Plan
from encore.products.figures import style
from encore.products.figures.base import FigureContent, FigureKind, FigurePoint, PointAxes, Points
from encore.products.figures.inspected import (
    InspectedEntry,
    InspectionsSlice,
    inspected_texts,
    read_inspection,
    without_head,
)
from encore.products.figures.style import INK, SOFT
from encore.products.tables.grid import CellRequest
from encore.storage.csv_rows import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Page

SHARES = {"of_text": "of the text’s pieces (Algorithm 1)", "of_top": "of the k pieces (the paper’s caption)"}
COLUMNS = {
    "label": "The line.",
    "system": "The system.",
    "seed": "The seed.",
    "dataset": "Whose texts were read.",
    "texts": "How many.",
    "pieces": "Their mean number of different word pieces.",
    "head": "The vocabulary head that names pieces.",
    "k": "Pieces that the vector names first.",
    "of_text": "Share of a text's pieces that are among them.",
    "of_top": "Share of them that are pieces of the text.",
    "error": "Standard error of `of_text` over texts.",
}


class CoverageFigure(InspectedEntry):
    """An entry of a figure of coverage."""

    kind: Literal["coverage"]
    length: Positive = 144
    texts: Positive = Field(10_000, description="The number of texts of the dataset; all where it has fewer.")
    sample: int = Field(
        0, ge=0, description="The number of the sample: each number gives another random sample of that size."
    )
    ks: list[Positive] = Field([10, 20, 50, 100, 200], min_length=2)
    head: Literal["start", "own"] = Field(
        "start",
        description="The vocabulary head that names words: that of the model all started from (BERT's "
        "own), or each model's own.",
    )

    def axes(self) -> PointAxes:
        """Its two panels (shares of the text's word pieces and of the top k), systems, and values of k."""
        return PointAxes(dict.fromkeys(SHARES), self.systems, list(map(str, self.ks)))


class CoverageSlice(InspectionsSlice):
    """What the figure is drawn from."""

    ks: list[int]


def plan_coverage(plan: Plan, figure: CoverageFigure) -> FigureContent:
    """Every system under every seed."""
    what = figure.model_dump(include={"texts", "sample", "ks", "head"})
    return inspected_texts(plan, figure, what, plan.config.seeds, ks=figure.ks)


def points(figure: CoverageSlice, axes: PointAxes) -> Points:
    """A share for each seed."""
    for row in figure.rows:
        for panel in axes.panels:
            for place in axes.places:
                yield FigurePoint(panel, row.label, place), [CellRequest(value=panel, reads=row.inspections)]


def draw_coverage(figure: CoverageSlice) -> tuple[list[list[str]], Page]:
    """A line a value of k and seed; a panel a way to count shares."""
    found = [[(inspected.seed, read_inspection(inspected)) for inspected in row.inspections] for row in figure.rows]
    lines = [
        [*row.names(seed), *about, str(value["k"]), *(number(value[name]) for name in ("of_text", "of_top", "error"))]
        for row, inspections in zip(figure.rows, found, strict=True)
        for seed, result in inspections
        for about in [[figure.dataset, str(result["texts"]), number(result["pieces"]), result["head"]]]
        for value in result["values"]
    ]
    return lines, _page(figure, [[result for _, result in inspections] for inspections in found])


def _page(figure: CoverageSlice, found: list[list[dict[str, Any]]]) -> Page:
    from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

    from encore.evaluation.scores import exact_mean

    one, seeds = found[0][0], len(found[0])
    says = f"{one['texts']:,} texts of {figure.dataset}, {one['pieces']:.0f} different pieces each on average; "
    says += f"{seeds} seed{'s' * (seeds != 1)}. A text’s pieces are those that the model reads, special ones left out."
    caption = figure.caption(says, without_head(figure, [inspections[0] for inspections in found]))
    legend = style.legend_width([row.label for row in figure.rows])
    page = style.page(7.2 + legend, 3.0, figure.title, caption, right=legend, wspace=0.05)
    axes = page.figure.subplots(1, len(SHARES), squeeze=False)
    for axis, (name, share) in zip(axes[0], SHARES.items(), strict=True):
        for place, (row, inspections) in enumerate(zip(figure.rows, found, strict=True)):
            by_k = [[value[name] for value in result["values"]] for result in inspections]
            means = [exact_mean(values) for values in zip(*by_k, strict=True)]
            axis.plot(figure.ks, means, linewidth=1.8, markersize=5, label=row.label, **style.line_look(place))
        axis.set_title(f"Share {share}", loc="left", fontsize=9.5, fontweight="bold", color=INK)
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(FixedLocator(figure.ks))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axis.set_ylim(0, 1.05 * axis.dataLim.y1)
        axis.set_xlabel("k, first pieces that are looked at", color=SOFT, fontsize=8.5)
        style.plain_axis(axis)
    style.legend_beside(page, axes[0, 0])
    return page.figure


KIND = FigureKind(CoverageFigure, plan_coverage, CoverageSlice, COLUMNS, draw_coverage, points)

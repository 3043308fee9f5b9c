"""A query among its candidates on a map of each system that keeps near what is near (t-SNE)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from encore.config.finetuning import FinetuneStep
from encore.config.validation import Positive
from encore.errors import EncoreError
from encore.products.figures import style
from encore.products.figures.base import DRAWN, FigureContent, FigureKind, available
from encore.products.figures.inspected import InspectedEntry, InspectionsSlice, inspected_row
from encore.products.figures.style import INK, SOFT
from encore.storage.csv_rows import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Page

    from encore.plan.plan import Plan

COLUMNS = DRAWN | {
    "query": "The query's id.",
    "name": "The point's id.",
    "kind": "The query, a relevant passage, or another one.",
    "rank": "The passage's rank.",
    "x": "Place by t-SNE, without unit.",
    "y": "Place by t-SNE, without unit.",
}
# In the order in which they are drawn, the last on top.
LOOKS: dict[str, dict[str, Any]] = {
    "candidate": {"marker": "o", "s": 22, "color": "#9fb4c4", "linewidths": 0, "label": "candidate"},
    "relevant": {"marker": "*", "s": 170, "color": "#d55e00", "edgecolors": "white", "label": "relevant"},
    "query": {"marker": "D", "s": 62, "color": "#0b3c5d", "edgecolors": "white", "label": "query"},
}


class MapFigure(InspectedEntry):
    """An entry of a map."""

    kind: Literal["map"]
    split: str = "test"
    sample: int = Field(0, ge=0, description="The number of the random order whose first query is shown.")
    candidates: Positive = Field(
        100, description="The first ranks of a system's run that are drawn, in addition to relevant passages."
    )
    perplexity: float = Field(30, gt=1)
    seed_of_map: int = Field(0, ge=0, description="The seed of t-SNE.")


class MapSlice(InspectionsSlice):
    """What the figure is drawn from."""

    split: str
    perplexity: int | float


def plan_map(plan: Plan, figure: MapFigure) -> FigureContent:
    """Every system under the first seed, each with the candidates from its run."""
    if reason := plan.resolve.datasets.absence(figure.dataset, figure.split):
        raise EncoreError(f"split {figure.split!r} of {figure.dataset!r} is not there: {reason}")
    what = figure.model_dump(include={"kind", "split", "sample", "candidates", "perplexity", "seed_of_map"})
    systems, notes = available(plan, figure.systems)
    seed, rows, trained = plan.config.seeds[0], [], []
    for label, system in systems.items():
        lineage = plan.resolve.lineage(system)
        found = plan.inspect_candidates(lineage, seed, figure.dataset, what)
        rows.append(inspected_row(label, lineage, {seed: found}))
        last = plan.resolve.step(lineage.steps[-1]) if lineage.steps else None
        if isinstance(last, FinetuneStep) and last.queries:
            trained.append(f"{label} on {last.queries:,}")
    fields = {"dataset": plan.resolve.dataset(figure.dataset).name}
    fields |= figure.model_dump(include={"split", "perplexity"})
    return FigureContent(rows, fields, [*([f"Training queries: {'; '.join(trained)}."] if trained else []), *notes])


def draw_map(figure: MapSlice) -> tuple[list[list[str]], Page]:
    """A line a text; a panel a system."""
    found = figure.first()
    lines = [
        [*row.names(), result["query"], each["name"], each["kind"], rank, number(each["x"]), number(each["y"])]
        for row, result in zip(figure.rows, found, strict=True)
        for each in result["points"]
        for rank in ["" if each["rank"] is None else str(each["rank"])]
    ]
    says = f"Query {found[0]['query']} of {figure.dataset}, split {figure.split}: “{found[0]['text']}”; the first of a "
    says += f"random order, chosen before any model was run. t-SNE of vectors, perplexity {figure.perplexity:g}; "
    says += "each system’s own candidates, and what is relevant."
    width = 0.4 + 3.7 * max(len(found), 2)
    legend = 0.3  # inches, above the caption
    page = style.page(width, 3.9, figure.title, figure.caption(says), below=legend, wspace=0.04)
    axes = page.figure.subplots(1, len(found), squeeze=False)
    for axis, row, result in zip(axes[0], figure.rows, found, strict=True):
        _panel(axis, row.label, result["points"])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    look: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "labelcolor": INK}
    place = (0.005, (page.bottom - 0.35) / page.figure.get_figheight())
    page.figure.legend(handles, labels, loc="lower left", bbox_to_anchor=place, ncols=3, **look)
    return lines, page.figure


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


KIND = FigureKind(MapFigure, plan_map, MapSlice, COLUMNS, draw_map)

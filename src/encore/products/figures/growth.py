"""Retrieval as a collection grows: nested samples of it (TCT-ColBERT, figure 2), the smallest mostly distractors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from encore.config.validation import Positive
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec, Topics
from encore.plan.artifacts.systems import search, shards_of
from encore.plan.lineage import split_index
from encore.plan.plan import Plan
from encore.products.figures import curves
from encore.products.figures.base import (
    FigureContent,
    FigureEntry,
    FigureKind,
    PanelEntry,
    PointAxes,
    Systems,
    available,
    measured,
)
from encore.products.figures.curves import CurveLine, CurvePanel, CurvePoint
from encore.stages.search import Search

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Page


class GrowthFigure(FigureEntry):
    """Retrieval as a collection grows around the queries of a split; one panel a measure."""

    kind: Literal["growth"]
    systems: Systems
    dataset: str
    queries: Positive | None = Field(
        None, description="The size of the sample of queries; without it, all queries of the split."
    )
    sample: int = Field(
        0, ge=0, description="The number of the sample: each number gives another random sample of that size."
    )
    depth: Positive = Field(
        1000,
        description="The ranks of BM25 for each query that the smallest collection has in addition to "
        "relevant passages.",
    )
    sizes: list[Positive | Annotated[float, Field(gt=0, lt=1)]] = Field(
        description="The sizes of the collection in passages, or as shares of all if below 1; the "
        "smallest and the whole are always drawn."
    )
    order: int = Field(0, ge=0, description="The number of the random order in which passages are added.")
    panels: list[PanelEntry] = Field(min_length=1)

    def axes(self) -> PointAxes:
        """Its panels, systems, and corpus sizes from the start to all passages."""
        panels: dict[str, str | None] = {panel.label: panel.split for panel in self.panels}
        return PointAxes(panels, self.systems, ["start", *map(str, self.sizes), "all"])


def plan_growth(plan: Plan, figure: GrowthFigure) -> FigureContent:
    """Runs and scores of every system at each size, under each seed; what the dataset cannot have is noted."""
    panels, absent = measured(plan, figure.dataset, figure.panels)
    systems, notes = available(plan, figure.systems)
    rows = []
    for label, system in systems.items():
        if system in plan.catalogue.systems or split_index(system)[1] is not None:
            raise EncoreError(f"systems: {system!r} is not a lineage searched exactly; name one without an index")
        points = [
            CurvePoint(measured=place, sample=0, seed=seed, size=size, run=run.folder, scores=scores.folder)
            for place, panel in enumerate(panels)
            for seed in plan.config.seeds
            for size, run, scores in _points(plan, figure, panel.split, system, seed)
        ]
        reads = [folder for point in points for folder in (point.scores, point.run) if folder]
        name = plan.resolve.canonical(system)
        rows.append(CurveLine(id=label, label=label, system=name, points=points, reads=reads))
    about = (
        f"The collection starts from what is relevant and BM25’s first {figure.depth:,} of each query; passages join "
        "in one random order, and the same vectors are searched at each size."
    )
    shown = [CurvePanel(measured=place, over="passages", **panel.model_dump()) for place, panel in enumerate(panels)]
    fields = {"panels": shown, "dataset": plan.resolve.dataset(figure.dataset).name}
    return FigureContent(rows, fields, [about, *absent, *notes])


def _points(
    plan: Plan, figure: GrowthFigure, split: str, system: str, seed: int
) -> list[tuple[str | float, Artifact, Artifact]]:
    """A lineage's runs and scores from the smallest collection to all of it, each with its size.

    The run over a part of the collection is the run over all of it, with its vectors masked.
    """
    splits, dataset = plan.resolve.dataset(figure.dataset).fields.splits, plan.resolve.dataset(figure.dataset).name
    asked = Topics(splits[split].topics or split, plan.config.depth, figure.queries, figure.sample)
    whole, collection = plan.run(system, seed, figure.dataset, asked), plan.collection(figure.dataset)

    # The order in which the collection grows.
    topics = asked._replace(depth=figure.depth)
    inputs = {"run": plan.run("bm25", None, figure.dataset, topics), "collection": collection}
    fields: Spec = {**topics._asdict(), "order": figure.order}
    subset = plan.make("nested_corpora", f"subsets/{dataset}.{topics}", fields, inputs)

    found = []
    for size in ("start", *figure.sizes, "all"):
        called, run = f"{100 * size:g}pct" if isinstance(size, float) else str(size), whole
        if size != "all":
            part = {**whole.typed(Search).dumped(), "size": size}
            read = {role: whole.inputs[role] for role in ("model", "tokens", "collection")}
            read |= {**shards_of(whole.inputs), "subset": subset}
            run = search(plan, f"{whole.owner}/{dataset}.{asked}.{called}", part, read)
        # The measures of the split alone: others that share its queries have relevant passages of their own.
        scored = {"run": run, "collection": collection}
        fields = {"splits": {split: splits[split].measures}, "queries": figure.queries, "sample": figure.sample}
        scores = plan.make("evaluate", f"scores/{run.owner}/{dataset}.{asked}.{called}", fields, scored)
        found.append((size, run, scores))
    return found


def draw_growth(figure: curves.CurvesSlice) -> tuple[list[list[str]], Page]:
    """A line of data a point, seed and sample; a panel a measure."""
    from encore.products.figures import curve

    return curve.draw(figure)


KIND = FigureKind(
    GrowthFigure,
    plan_growth,
    curves.CurvesSlice,
    curves.COLUMNS,
    draw_growth,
    lambda figure, axes: curves.points(figure, axes, str),
)

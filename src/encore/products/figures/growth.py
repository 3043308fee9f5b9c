"""The plan of a figure of retrieval by corpus size: a row a system, with a point for each panel, size and seed."""

from typing import Any

from encore.plan.plan import Plan
from encore.products.figures.content import FigureContent, measured, testable
from encore.products.figures.corpus_size_plan import points, searched
from encore.products.figures.entries import GrowthFigure

OVER = "passages"


def planned(plan: Plan, figure: GrowthFigure) -> FigureContent:
    """Runs and scores of every system at each size, under each seed; what the dataset cannot have is noted."""
    panels, absent = measured(plan, figure.dataset, figure.panels)
    systems, notes = testable(plan, figure.systems)
    rows = []
    for label, system in systems.items():
        searched(plan, system)
        found: list[dict[str, Any]] = [
            {"measured": place, "sample": 0, **point}
            for place, panel in enumerate(panels)
            for seed in plan.config.seeds
            for point in points(plan, figure.corpus_size(panel), system, seed)
        ]
        reads = [point[kind] for point in found for kind in ("scores", "run")]
        rows.append(
            {"id": label, "label": label, "system": plan.resolve.canonical(system), "points": found, "reads": reads}
        )
    about = (
        f"The collection starts from what is relevant and BM25’s first {figure.depth:,} of each query; passages join "
    )
    about += "in one random order, and the same vectors are searched at each size."
    shown = [{"measured": place, "over": OVER, **panel.model_dump()} for place, panel in enumerate(panels)]
    return FigureContent(
        rows, {"panels": shown, "dataset": plan.resolve.dataset_name(figure.dataset)}, [about, *absent, *notes]
    )

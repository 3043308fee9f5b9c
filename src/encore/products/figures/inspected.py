"""The plans of figures that look into models: each row is a system, and reads what an inspection found for it."""

from typing import Any

from encore.config.finetuning import FinetuneStep
from encore.config.lineage import Lineage
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.artifacts import inspections
from encore.plan.plan import Plan
from encore.products.figures.content import FigureContent, testable
from encore.products.figures.entries import CoverageFigure, ExampleEntry, HeatFigure, MapFigure, WordsFigure


def coverage(plan: Plan, figure: CoverageFigure) -> FigureContent:
    """Every system under every seed."""
    what = figure.model_dump(include={"kind", "length", "texts", "sample", "ks", "head"})
    fields = {"ks": figure.ks, "dataset": plan.resolve.dataset(figure.dataset).name}
    return _of_texts(plan, figure.systems, figure.dataset, what, list(plan.config.seeds), fields)


def words(plan: Plan, figure: WordsFigure) -> FigureContent:
    """Every system under the first seed."""
    what = figure.model_dump(include={"kind", "length", "top", "head"}) | _example(figure.example)
    fields = {"top": figure.top, "dataset": plan.resolve.dataset(figure.dataset).name}
    return _of_texts(plan, figure.systems, figure.dataset, what, plan.config.seeds[:1], fields)


def heat(plan: Plan, figure: HeatFigure) -> FigureContent:
    """Every system under the first seed; its last step must train a decoder of words."""
    what = figure.model_dump(include={"kind", "length"}) | _example(figure.example)
    fields = {"dataset": plan.resolve.dataset(figure.dataset).name}
    return _of_texts(plan, figure.systems, figure.dataset, what, plan.config.seeds[:1], fields)


def candidates(plan: Plan, figure: MapFigure) -> FigureContent:
    """Every system under the first seed, each with the candidates of its own run."""
    what = figure.model_dump(include={"kind", "split", "sample", "candidates", "perplexity", "seed_of_map"})
    if reason := plan.resolve.datasets.absence(figure.dataset, figure.split):
        raise EncoreError(f"split {figure.split!r} of {figure.dataset!r} is not there: {reason}")
    systems, notes = testable(plan, figure.systems)
    seed = plan.config.seeds[0]
    rows = []
    for label, system in systems.items():
        lineage = plan.resolve.lineage(system)
        rows.append(_row(label, lineage, {seed: inspections.of_candidates(plan, lineage, seed, figure.dataset, what)}))
    fields = {
        "dataset": plan.resolve.dataset(figure.dataset).name,
        "split": figure.split,
        "perplexity": figure.perplexity,
    }
    lineages = {label: plan.resolve.lineage(system) for label, system in systems.items()}
    last = {label: plan.resolve.step(lineage.steps[-1]) for label, lineage in lineages.items() if lineage.steps}
    trained = {label: step.queries for label, step in last.items() if isinstance(step, FinetuneStep) and step.queries}
    about = "; ".join(f"{label} on {queries:,}" for label, queries in trained.items())
    return FigureContent(rows, fields, [*([f"Training queries: {about}."] if about else []), *notes])


def _of_texts(
    plan: Plan, systems: dict[str, str], dataset: str, what: dict[str, Any], seeds: list[int], fields: dict[str, Any]
) -> FigureContent:
    if reason := plan.resolve.datasets.absence(dataset):
        raise EncoreError(f"dataset {dataset!r} is not there: {reason}")
    found, notes = testable(plan, systems)
    rows = []
    for label, system in found.items():
        lineage = plan.resolve.lineage(system)
        if plan.resolve.backbone(lineage).architecture != "bert":
            raise EncoreError(f"{system!r} is a bag of words, which has no vocabulary head; name another system")
        by_seed = {seed: inspections.of_texts(plan, lineage, seed, dataset, what) for seed in seeds}
        rows.append(_row(label, lineage, by_seed))
    return FigureContent(rows, fields, notes)


def _row(label: str, lineage: Lineage, by_seed: dict[int, Artifact]) -> dict[str, Any]:
    found = [{"seed": seed, "folder": artifact.folder} for seed, artifact in by_seed.items()]
    return {"label": label, "system": str(lineage), "inspections": found, "reads": [each["folder"] for each in found]}


def _example(example: ExampleEntry) -> dict[str, Any]:
    """How an inspection finds the text: given, or a passage by a fixed rule."""
    if example.text is not None:
        return {"text": example.text}
    return example.model_dump(include={"shortest", "longest", "sample"})

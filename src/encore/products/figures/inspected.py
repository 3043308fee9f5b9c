"""Figures that look into models: each row is a system, and reads what an inspection found for it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from encore.config.validation import Positive, Strict
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.lineage import Lineage
from encore.plan.plan import Plan
from encore.products.figures.base import DrawnRow, FigureContent, FigureEntry, FigureSlice, Systems, available
from encore.products.slices import Read

INSPECTION = "inspection.json"


class InspectedEntry(FigureEntry):
    """The fields of every figure that looks into models."""

    systems: Systems
    dataset: str


class ExampleEntry(Strict):
    """A text that a figure shows: one of the dataset's by a fixed rule, or a given one."""

    text: str | None = Field(None, description="The text that is shown; without it, a passage of the dataset.")
    shortest: Positive = Field(40, description="The fewest word pieces of the passage.")
    longest: Positive = Field(80, description="The most word pieces of the passage.")
    sample: int = Field(0, ge=0, description="The number of the random order whose first fitting passage is shown.")

    def rule(self) -> dict[str, Any]:
        """How an inspection finds the text."""
        if self.text is not None:
            return {"text": self.text}
        return self.model_dump(include={"shortest", "longest", "sample"})


def inspected_texts(plan: Plan, figure: Any, what: dict[str, Any], seeds: list[int], **fields: Any) -> FigureContent:
    """A figure of what models say of texts: each system of its entry under each seed.

    Args:
        figure: the entry, with ``kind``, ``systems``, ``dataset`` and ``length``.
        what: the inspection's further fields.
        fields: what the drawing needs besides the rows.
    """
    if reason := plan.resolve.datasets.absence(figure.dataset):
        raise EncoreError(f"dataset {figure.dataset!r} is not there: {reason}")
    systems, notes = available(plan, figure.systems)
    what, rows = {"kind": figure.kind, "length": figure.length, **what}, []
    for label, system in systems.items():
        lineage = plan.resolve.lineage(system)
        if plan.resolve.backbone(lineage).architecture != "bert":
            raise EncoreError(
                f"{system!r} has no vocabulary head, which only a BERT of our own keeps; name another system"
            )
        found = {seed: plan.inspect_texts(lineage, seed, figure.dataset, what) for seed in seeds}
        rows.append(inspected_row(label, lineage, found))
    return FigureContent(rows, {**fields, "dataset": plan.resolve.dataset(figure.dataset).name}, notes)


def inspected_row(label: str, lineage: Lineage, by_seed: dict[int, Artifact]) -> "FigureRow":
    """A system with the inspections of its models."""
    found = [Read(seed=seed, folder=artifact.folder) for seed, artifact in by_seed.items()]
    return FigureRow(label=label, system=str(lineage), inspections=found, reads=[each.folder for each in found])


class FigureRow(DrawnRow):
    """A system with what was found in it."""

    inspections: list[Read] = []

    def names(self, seed: int | None = None) -> list[str]:
        """The first fields of a CSV line: label, lineage and seed (the first inspection's by default)."""
        return [self.label, self.system, str(self.inspections[0].seed if seed is None else seed)]


class InspectionsSlice(FigureSlice):
    """A figure of what inspections found."""

    rows: list[FigureRow]

    def reads(self) -> dict[Path, Sequence[str] | None]:
        """Folders of the inspections, of each the one file that is read."""
        return {Path(each.folder): (INSPECTION,) for row in self.rows for each in row.inspections}

    def first(self) -> list[dict[str, Any]]:
        """What the first inspection of each row found."""
        return [read_inspection(row.inspections[0]) for row in self.rows]


def read_inspection(inspected: Read) -> dict[str, Any]:
    """What an inspection found."""
    found: dict[str, Any] = json.loads(Path(inspected.folder, INSPECTION).read_text())
    return found


def without_head(figure: InspectionsSlice, found: list[dict[str, Any]]) -> str:
    """A sentence for the caption about models without a whole vocabulary head, or nothing."""
    bare = [row.label for row, one in zip(figure.rows, found, strict=True) if one["head"] == "embeddings"]
    if not bare:
        return ""
    return f"No whole vocabulary head, so the product with the word embeddings (Eq. 11): {', '.join(bare)}."

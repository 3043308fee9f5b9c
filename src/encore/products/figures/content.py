"""What the plans of all figures share: the content that each returns, and the systems that a run can have."""

from dataclasses import dataclass, field
from typing import Any

from encore.config.lineage import split_index
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.plan import Plan
from encore.products.figures.entries import PanelEntry


@dataclass(frozen=True)
class FigureContent:
    """The rows of a figure, the fields that decide its appearance, and notes for its caption."""

    rows: list[dict[str, Any]]
    fields: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def testable(plan: Plan, systems: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """The systems that this run can have, by label, and a sentence about each of the others."""
    reasons = {label: plan.resolve.missing_start(split_index(system)[0]) for label, system in systems.items()}
    found = {label: system for label, system in systems.items() if not reasons[label]}
    return found, [f"{label} is not testable here: {reason}." for label, reason in reasons.items() if reason]


def measured(plan: Plan, dataset: str, panels: list[PanelEntry]) -> tuple[list[PanelEntry], list[str]]:
    """The panels whose split this run's dataset has, and a sentence about each of the others.

    Raises:
        EncoreError: a split has no such measure, or all panels are absent.
    """
    found, notes = [], []
    for panel in panels:
        if reason := plan.resolve.datasets.absence(dataset, panel.split):
            notes.append(f"{panel.label} is not testable here: {reason}.")
            continue
        splits = plan.resolve.dataset(dataset).fields.splits
        if panel.split not in splits:
            name, near = plan.resolve.dataset(dataset).name, nearest(panel.split, splits)
            raise EncoreError(f"dataset {name!r} has no split {panel.split!r}{near}")
        if panel.measure not in (known := splits[panel.split].measures):
            near = nearest(panel.measure, known)
            raise EncoreError(f"{panel.measure!r} is not measured on split {panel.split!r} of {dataset!r}{near}")
        found.append(panel)
    if not found:
        raise EncoreError(f"nothing is left to draw: {notes[0]}")
    return found, notes

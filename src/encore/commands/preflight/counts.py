"""Counts of planned trainings next to those that were published."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from encore.commands.preflight import shapes, trainings
from encore.commands.preflight.jobs import TRAINING, Needed
from encore.commands.preflight.sizes import CollectionSizes
from encore.plan.published_counts import published_counts, share_with_triples, step_name


@dataclass(frozen=True)
class ComparedCount:
    """A count of the trainings of some steps: as it is forecast, and as it was published."""

    steps: tuple[str, ...]
    count: str
    ours: float
    published: float
    place: str


def compared_counts(jobs: Iterable[Needed], sizes: CollectionSizes) -> list[ComparedCount]:
    """The counts of jobs that there are published ones for; steps that have the same ones together."""
    found: dict[tuple[str, float, float, str], dict[str, None]] = {}
    catalogue = sizes.plan.catalogue
    for made in (job.artifact for job in jobs if job.rule in TRAINING):
        entries, size = published_counts(catalogue, made), sizes.behind(made)
        if not entries or size is None:
            continue
        ours = trainings.counts(shapes.step_of(made), size, share_with_triples(catalogue, made))
        for entry in entries:
            same = (entry.count, round(ours[entry.count], 1), entry.published, entry.place)
            found.setdefault(same, {})[step_name(made)] = None
    return [ComparedCount(tuple(steps), *same) for same, steps in found.items()]

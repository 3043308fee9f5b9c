"""Datasets that replace withdrawn ones, where anything was made from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from encore.plan.artifact import Artifact, upstream

if TYPE_CHECKING:
    from encore.plan.plan import Plan


def substitutes(plan: Plan, read: Iterable[Artifact]) -> Iterator[str]:
    """The sentence about every such dataset upstream of some artifacts."""
    collections = (artifact for artifact in upstream(read) if artifact.stage.startswith("collection."))
    used = {artifact.name.rpartition("-")[0] for artifact in collections}
    for name in plan.resolve.datasets:
        if name in used and plan.resolve.dataset(name).fields.note:
            yield plan.resolve.dataset(name).fields.note

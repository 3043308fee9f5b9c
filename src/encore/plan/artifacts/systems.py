"""Runs: a system's ranking for the queries of a split. One function a kind of system; lineages are searched densely."""

from collections.abc import Callable
from typing import Any

from encore.config.lineage import split_index
from encore.config.validation import explained
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Topics
from encore.plan.artifacts import bm25, dense, fusion, indexed, rerank
from encore.plan.planner import Planner

# How the run of each kind of system is planned: (plan, name, fields, seed, dataset, topics).
KINDS: dict[str, Callable[..., Artifact]] = {"bm25": bm25.run, "fusion": fusion.run, "rerank": rerank.run}


def run(plan: Planner, system: str, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    """A system's run over the queries of a split.

    Args:
        system: an entry of systems.yaml, or a lineage, perhaps with the index that it is searched in.
        seed: None where the system has no chance in it.

    Raises:
        EncoreError: a lineage without a seed, or one whose model gives texts no single vector.
    """
    if system in plan.catalogue.systems:
        fields: Any = plan.resolve.system(system)
        place = f"system {system!r}"
        return explained(lambda kind: kind(plan, system, fields, seed, dataset, topics), KINDS[fields.kind], place)
    if seed is None:
        raise EncoreError(f"system {system!r} is trained, so its run needs a seed")
    name, index = split_index(system)
    lineage = plan.resolve.lineage(name)
    if (scorer := plan.resolve.scorer(lineage)) != "vector":
        raise EncoreError(
            f"lineage {system!r} ends with a {scorer} scorer, whose texts have no single vector to search; "
            "rank another system's results again with it: an entry of kind `rerank` in systems.yaml"
        )
    if index is not None:
        return indexed.run(plan, lineage, index, seed, dataset, topics)
    return dense.run(plan, lineage, seed, dataset, topics)

"""The plan of measurements: the time of one query in a system and the size of its index; only tables read it."""

from __future__ import annotations

from encore.plan.artifact import Artifact, Topics
from encore.plan.artifacts.collections import collection
from encore.plan.planner import Planner

# What a measurement reads of a system whose runs the stage makes, by role; shards are read where there are any.
READS: dict[str, tuple[str, ...]] = {
    "lucene_search": ("collection", "index"),
    "search": ("collection", "model", "tokens"),
    "search_index": ("collection", "model", "tokens", "index"),
    "fuse": ("sparse", "dense"),
    "rerank": ("first", "model", "tokens"),
}
# The systems that it is made of, whose own measurements it reads, as its entry calls them.
PARTS: dict[str, tuple[str, ...]] = {"fuse": ("sparse", "dense"), "rerank": ("first",)}


def latency(plan: Planner, system: str, seed: int | None, dataset: str, split: str) -> Artifact | None:
    """The latency of a system on queries of a split; None for a kind that cannot be measured yet."""
    run = plan.run(system, seed, dataset, Topics(split, plan.config.depth))
    if run.stage not in READS:
        return None
    inputs = {role: run.inputs[role] for role in READS[run.stage] if role in run.inputs}
    inputs |= {role: shard for role, shard in run.inputs.items() if role.startswith("shard")}
    inputs.setdefault("collection", collection(plan, dataset))
    for number, role in enumerate(PARTS.get(run.stage, ())):
        measured = latency(plan, getattr(plan.resolve.system(system), role), seed, dataset, split)
        if measured is None:
            return None
        inputs[f"part{number}"] = measured
    how = plan.config.latency.model_dump()
    of_parts = {role: artifact.name for role, artifact in inputs.items() if role.startswith("part")}
    spec = {"impl": plan.impl("measure_latency"), "kind": run.stage, "run": run.spec, **how, **of_parts}
    return plan.make(
        "measure_latency", f"latency/{run.owner}/{plan.resolve.dataset_name(dataset)}.{split}", spec, inputs
    )

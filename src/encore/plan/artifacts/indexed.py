"""The plan of search in an index of a named type: the index, made of the exact shards, and a run over it."""

from __future__ import annotations

from encore.config.lineage import Lineage, StepName
from encore.plan.artifact import Artifact, Topics, names
from encore.plan.artifacts import dense
from encore.plan.planner import Planner


def run(plan: Planner, lineage: Lineage, index: StepName, seed: int, dataset: str, topics: Topics) -> Artifact:
    """A lineage's run over the queries of a split, searched in an index of that type.

    The exact run over the same queries is read too: the recall of its answers is reported with the run.
    """
    exact = dense.run(plan, lineage, seed, dataset, topics)
    inputs = {role: exact.inputs[role] for role in ("model", "tokens", "collection")}
    inputs |= {"index": built(plan, lineage, index, seed, dataset), "exact": exact}
    system = f"{inputs['model'].name}@{index}"
    how = {"query_length": plan.resolve.lengths(lineage)[1], "numerics": plan.numerics()}
    how |= {"search": plan.resolve.index_type(index).searching(), "system": system}
    spec = {"impl": plan.impl("search_index"), **topics._asdict(), **how, **names(inputs)}
    return plan.make("search_index", f"runs/{system}/{plan.resolve.dataset_name(dataset)}.{topics}", spec, inputs)


def built(plan: Planner, lineage: Lineage, index: StepName, seed: int, dataset: str) -> Artifact:
    """One index of a type over a dataset's vectors; how it will be searched is no part of it."""
    fields, backbone = plan.resolve.index_type(index), plan.resolve.backbone(lineage)
    fields.check(backbone.projection_dim or backbone.hidden)
    shards = dense.shards(plan, lineage, seed, dataset)
    spec = {"impl": plan.impl("build_index"), "index": fields.building(), "vectors": shards[0].owner}
    inputs = {f"shard{number}": shard for number, shard in enumerate(shards)}
    kept = StepName(index.name, tuple(pair for pair in index.overrides if pair[0] not in fields.SEARCH))
    owner = f"{plan.model(lineage, seed).name}@{kept}"
    return plan.make("build_index", f"indexes/{owner}/{plan.resolve.dataset_name(dataset)}", spec, inputs)

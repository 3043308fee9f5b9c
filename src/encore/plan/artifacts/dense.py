"""The plan of dense retrieval: a model's vectors of a collection in shards, and a run over them."""

from __future__ import annotations

from encore.config.lineage import Lineage
from encore.plan.artifact import Artifact, Topics, names
from encore.plan.artifacts.collections import collection
from encore.plan.artifacts.tokens import tokens
from encore.plan.planner import Planner
from encore.storage.files import digest


def run(plan: Planner, lineage: Lineage, seed: int, dataset: str, topics: Topics) -> Artifact:
    """A lineage's run over the queries of a split."""
    model, vectors = plan.model(lineage, seed), shards(plan, lineage, seed, dataset)
    inputs = {
        "model": model,
        "tokens": tokens(plan, dataset, plan.resolve.backbone(lineage)),
        "collection": collection(plan, dataset),
    }
    named = {**names(inputs), "index": vectors[0].owner, "system": model.name}
    inputs |= {f"shard{number}": shard for number, shard in enumerate(vectors)}
    how = {"query_length": plan.resolve.lengths(lineage)[1], "numerics": plan.numerics()}
    spec = {"impl": plan.impl("search"), **topics._asdict(), **how, **named}
    return plan.make("search", f"runs/{model.name}/{plan.resolve.dataset_name(dataset)}.{topics}", spec, inputs)


def shards(plan: Planner, lineage: Lineage, seed: int, dataset: str) -> list[Artifact]:
    """A dataset's vectors; the number of shards is execution, so it is in their names but in no digest."""
    model = plan.model(lineage, seed)
    inputs = {"model": model, "tokens": tokens(plan, dataset, plan.resolve.backbone(lineage))}
    spec = {
        "impl": plan.impl("encode"),
        "length": plan.resolve.passage_length(lineage, dataset),
        "numerics": plan.numerics(),
        **names(inputs),
    }
    folder = f"results/indexes/{model.name}/{plan.resolve.dataset_name(dataset)}-{digest(spec)}"
    count = plan.config.execution.shards_of(plan.resolve.dataset_name(dataset))
    return [plan.keep(Artifact("encode", f"{folder}/{n:03d}-of-{count:03d}", spec, inputs)) for n in range(count)]

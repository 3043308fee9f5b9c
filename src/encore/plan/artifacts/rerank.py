"""The plan of reranking: a first stage's run, and the model that ranks its best results again."""

from __future__ import annotations

from encore.config.systems import Rerank
from encore.plan.artifact import Artifact, Topics, names
from encore.plan.artifacts.collections import collection
from encore.plan.artifacts.tokens import tokens
from encore.plan.planner import Planner
from encore.storage.files import digest


def run(plan: Planner, system: str, fields: Rerank, seed: int, dataset: str, topics: Topics) -> Artifact:
    """The first stage's run over the queries of a split, its best ``depth`` in the order of the ranker's scores."""
    ranker = plan.resolve.lineage(fields.ranker)
    inputs = {
        "first": plan.run(fields.first, seed, dataset, topics._replace(depth=max(topics.depth, fields.depth))),
        "model": plan.model(ranker, seed),
        "tokens": tokens(plan, dataset, plan.resolve.backbone(ranker)),
    }
    impl, how = plan.impl("rerank"), {"reranked": fields.depth, "numerics": plan.numerics()}
    owner = f"{system}-s{seed}-{digest([impl, how, inputs['first'].owner, inputs['model'].name])}"
    spec = {"impl": impl, **topics._asdict(), **how, "system": owner, **names(inputs)}
    spec["collection"] = collection(plan, dataset).name
    return plan.make("rerank", f"runs/{owner}/{plan.resolve.dataset_name(dataset)}.{topics}", spec, inputs)

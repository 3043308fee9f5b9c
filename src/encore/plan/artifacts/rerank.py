"""The plan of reranking: a first stage's run, and the model that ranks its best results again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from encore.config.systems import Rerank
from encore.plan.artifact import Artifact, Topics, names
from encore.storage.files import digest

if TYPE_CHECKING:
    from encore.plan.artifacts.runs import Runs


def run(plan: Runs, system: str, fields: Rerank, seed: int, dataset: str, topics: Topics) -> Artifact:
    """The first stage's run over the queries of a split, its best ``depth`` in the order of the ranker's scores."""
    ranker = plan.lineage(fields.ranker)
    inputs = {
        "first": plan.run(fields.first, seed, dataset, topics._replace(depth=max(topics.depth, fields.depth))),
        "model": plan.model(ranker, seed),
        "tokens": plan.tokens(dataset, plan.backbone(ranker)),
    }
    impl, how = plan.impl("rerank"), {"reranked": fields.depth, "numerics": plan.numerics()}
    owner = f"{system}-s{seed}-{digest([impl, how, inputs['first'].owner, inputs['model'].name])}"
    spec = {"impl": impl, **topics._asdict(), **how, "system": owner, **names(inputs)}
    spec["collection"] = plan.collection(dataset).name
    return plan.make("rerank", f"runs/{owner}/{plan.dataset_name(dataset)}.{topics}", spec, inputs)

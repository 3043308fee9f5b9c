"""The plan of counts of pairs: how many a step learns from and how long they are; read by tables alone."""

from __future__ import annotations

from encore import objectives
from encore.config.entries import PretrainStep
from encore.config.lineage import Lineage
from encore.errors import EncoreError
from encore.objectives.parts.pairs import PairFields
from encore.plan.artifact import Artifact, names
from encore.plan.artifacts.tokens import tokens
from encore.plan.planner import Planner

DECISIVE = {"objective", "length", "query_length", "titles", "keep_sentence"}  # for which pairs there are


def pairs(plan: Planner, lineage: Lineage) -> Artifact:
    """The pairs of an epoch of a lineage's last step.

    Raises:
        EncoreError: the step learns from no pairs.
    """
    step = plan.resolve.step(lineage.steps[-1])
    if not isinstance(step, PretrainStep) or not issubclass(objectives.load(step.objective).Fields, PairFields):
        raise EncoreError(f"{lineage}: {str(lineage.steps[-1])!r} learns from no pairs; name a step of ict, bfs or wlp")
    collection = plan.resolve.dataset_name(step.collection)
    inputs = {"tokens": tokens(plan, step.collection, plan.resolve.backbone(lineage))}
    fixed = {"kind": "pretrain", "collection": collection, "steps": 1, "batch": 2, "learning_rate": 1.0}
    spec = {
        "impl": [plan.impl("count_pairs"), plan.impl(f"pretrain.{step.objective}")],
        "step": fixed | step.model_dump(mode="json", include=DECISIVE),
        **names(inputs),
    }
    return plan.make(f"count_pairs.{step.objective}", f"pairs/{collection}.{step.objective}", spec, inputs)

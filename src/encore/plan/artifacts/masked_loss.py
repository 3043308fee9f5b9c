"""The plan of what tables alone read of training texts: a model's loss on masked words, and counts of pairs."""

from encore import objectives
from encore.config.entries import PretrainStep
from encore.config.lineage import Lineage, StepName
from encore.errors import EncoreError
from encore.objectives.parts.pairs import PairFields
from encore.plan.artifact import Artifact, names
from encore.plan.artifacts.collections import tokens
from encore.plan.planner import Planner

TEXTS = 10_000  # of the collection, or all where it has fewer (BoW, section 3.2)
BATCH = 64  # a mean is within batches first, so their size is part of what is measured
DECISIVE = {"objective", "length", "query_length", "titles", "keep_sentence"}  # for which pairs there are
MASKS = {"objective", "length", "mask_ratio", "whole_word", "min_tokens"}


def masked_loss(plan: Planner, lineage: Lineage, seed: int, dataset: str, step: str) -> Artifact:
    """The MLM loss of a lineage's model on a dataset's passages, masked as a step masks.

    Raises:
        EncoreError: the step is no MLM, or the model is no BERT of our own.
    """
    how = plan.resolve.step(StepName(step))
    if getattr(how, "objective", None) != "mlm":
        raise EncoreError(f"{step!r} is not a step of MLM, so it does not say how words are masked; name one that is")
    if plan.resolve.backbone(lineage).architecture != "bert":
        raise EncoreError(
            f"{lineage}: masked words are told by a BERT of our own alone (`architecture: bert`), not by Transformers' "
            "code, and a bag of words has no states; leave the cell `not_applicable`"
        )
    fixed = {"kind": "pretrain", "collection": plan.resolve.dataset(dataset).name, "steps": 1, "batch": BATCH}
    inputs = {"model": plan.model(lineage, seed), "tokens": tokens(plan, dataset, plan.resolve.backbone(lineage))}
    spec = {
        "impl": plan.impl("masked_loss"),
        "step": fixed | {"learning_rate": 1.0} | how.model_dump(mode="json", include=MASKS),
        "texts": TEXTS,
        "numerics": plan.numerics(),
        **names(inputs),
    }
    return plan.make("masked_loss", f"losses/{inputs['model'].name}/{plan.resolve.dataset(dataset).name}", spec, inputs)


def pairs(plan: Planner, lineage: Lineage) -> Artifact:
    """The pairs of an epoch of a lineage's last step.

    Raises:
        EncoreError: the step learns from no pairs.
    """
    step = plan.resolve.step(lineage.steps[-1])
    if not isinstance(step, PretrainStep) or not issubclass(objectives.load(step.objective).Fields, PairFields):
        raise EncoreError(f"{lineage}: {str(lineage.steps[-1])!r} learns from no pairs; name a step of ict, bfs or wlp")
    collection = plan.resolve.dataset(step.collection).name
    inputs = {"tokens": tokens(plan, step.collection, plan.resolve.backbone(lineage))}
    fixed = {"kind": "pretrain", "collection": collection, "steps": 1, "batch": 2, "learning_rate": 1.0}
    spec = {
        "impl": [plan.impl("count_pairs"), plan.impl(f"pretrain.{step.objective}")],
        "step": fixed | step.model_dump(mode="json", include=DECISIVE),
        **names(inputs),
    }
    return plan.make(f"count_pairs.{step.objective}", f"pairs/{collection}.{step.objective}", spec, inputs)

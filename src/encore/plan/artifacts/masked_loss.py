"""The plan of losses on masked words: which model, on which texts, under which masks; read by tables alone."""

from __future__ import annotations

from encore.config.lineage import Lineage, StepName
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, names
from encore.plan.artifacts.tokens import tokens
from encore.plan.planner import Planner

TEXTS = 10_000  # of the collection, or all where it has fewer (BoW, section 4.1)
BATCH = 64  # a mean is within batches first, so their size is part of what is measured
MASKS = {"objective", "length", "mask_ratio", "whole_word", "min_tokens"}


def masked_loss(plan: Planner, lineage: Lineage, seed: int, dataset: str, step: str) -> Artifact:
    """The MLM loss of a lineage's model on a dataset's passages, masked as a step masks.

    Raises:
        EncoreError: the step is no MLM, or the model is a bag of words.
    """
    how = plan.resolve.step(StepName(step))
    if getattr(how, "objective", None) != "mlm":
        raise EncoreError(f"{step!r} is no step of MLM, so it does not say how words are masked; name one that is")
    if plan.resolve.backbone(lineage).architecture != "bert":
        raise EncoreError(
            f"{lineage}: a bag of words has no states to tell masked words from; leave the cell `not_applicable`"
        )
    fixed = {"kind": "pretrain", "collection": plan.resolve.dataset_name(dataset), "steps": 1, "batch": BATCH}
    inputs = {"model": plan.model(lineage, seed), "tokens": tokens(plan, dataset, plan.resolve.backbone(lineage))}
    spec = {
        "impl": plan.impl("masked_loss"),
        "step": fixed | {"learning_rate": 1.0} | how.model_dump(mode="json", include=MASKS),
        "texts": TEXTS,
        "numerics": plan.numerics(),
        **names(inputs),
    }
    return plan.make("masked_loss", f"losses/{inputs['model'].name}/{plan.resolve.dataset_name(dataset)}", spec, inputs)

"""The plan of inspections: a model's outputs on a few texts, for figures and tables, which read these and no model."""

from typing import Any

from encore import objectives
from encore.config.entries import PretrainStep
from encore.errors import EncoreError
from encore.objectives.parts.pairs import PairFields
from encore.plan.artifact import Artifact, Topics
from encore.plan.artifacts.collections import tokens
from encore.plan.lineage import Lineage, StepName
from encore.plan.planner import Planner

TEXTS = 300  # whose vectors are compared
LENGTH = 128  # tokens that are read of each text, or fewer if the model reads fewer
MASKED = 10_000  # texts of the collection, or all if it has fewer (BoW, section 3.2)
BATCH = 64  # losses are averaged within batches first, so the size of a batch matters
DECISIVE = {"objective", "length", "query_length", "titles", "keep_sentence"}  # the fields that determine the pairs
MASKS = {"objective", "length", "mask_ratio", "whole_word", "min_tokens"}


def of_texts(plan: Planner, lineage: Lineage, seed: int, dataset: str, what: dict[str, Any]) -> Artifact:
    """A model's outputs on passages of a dataset: ``what`` has the ``kind`` of inspection and its fields.

    ``head: start`` takes the vocabulary head of the model that the lineage starts from.
    """
    if plan.resolve.dataset(dataset).fields.only_articles and "text" not in what:
        raise EncoreError(
            f"dataset {plan.resolve.dataset(dataset).name!r} has articles only, to pre-train on, and no passage to "
            f"show ({what['kind']}); name a dataset with passages, or a text"
        )
    inputs = {"model": plan.model(lineage, seed), "tokens": tokens(plan, dataset, plan.resolve.backbone(lineage))}
    if what.get("head") == "start" and lineage.steps:
        inputs["head"] = plan.model(Lineage(lineage.backbone), seed)
    return _inspection(plan, dataset, what, inputs)


def of_candidates(plan: Planner, lineage: Lineage, seed: int, dataset: str, what: dict[str, Any]) -> Artifact:
    """A query among the candidates of a model's own run over the ``split`` that ``what`` names."""
    splits = plan.resolve.dataset(dataset).fields.splits
    if what["split"] not in splits:
        raise EncoreError(f"dataset {plan.resolve.dataset(dataset).name!r} has no split {what['split']!r}")
    topics = splits[what["split"]].topics or what["split"]
    run = plan.run(str(lineage), seed, dataset, Topics(topics, plan.config.depth))
    inputs = {role: run.inputs[role] for role in ("model", "tokens", "collection")} | {"run": run}
    passages, queries = plan.resolve.passage_length(lineage, dataset), plan.resolve.lengths(lineage)[1]
    return _inspection(plan, dataset, what | {"length": passages, "query_length": queries}, inputs)


def of_vectors(plan: Planner, lineage: Lineage, seed: int, dataset: str) -> Artifact:
    """How a model's vectors of passages of a dataset are distributed; the same passages for all models."""
    backbone = plan.resolve.backbone(lineage)
    if backbone.architecture == "bow-mlp":
        raise EncoreError(f"{lineage}: a bag of words has no states to pool; leave the cell `not_applicable`")
    what = {"kind": "vectors", "texts": TEXTS, "sample": 0, "length": min(LENGTH, backbone.max_length)}
    return of_texts(plan, lineage, seed, dataset, what)


def masked_loss(plan: Planner, lineage: Lineage, seed: int, dataset: str, step: str) -> Artifact:
    """The MLM loss of a lineage's model on a dataset's passages, masked as a step masks."""
    how = plan.resolve.step(StepName(step))
    if getattr(how, "objective", None) != "mlm":
        raise EncoreError(f"{step!r} is not a step of MLM, so it does not define a masking; name one that is")
    if plan.resolve.backbone(lineage).architecture != "bert":
        raise EncoreError(
            f"{lineage}: only Encore's own BERT (`architecture: bert`) predicts masked words, not Transformers' code "
            "or a bag of words; leave the cell `not_applicable`"
        )
    fixed = {"kind": "pretrain", "collection": plan.resolve.dataset(dataset).name, "steps": 1, "batch": BATCH}
    inputs = {"model": plan.model(lineage, seed), "tokens": tokens(plan, dataset, plan.resolve.backbone(lineage))}
    spec = {
        "step": fixed | {"learning_rate": 1.0} | how.model_dump(mode="json", include=MASKS),
        "texts": MASKED,
        "numerics": plan.numerics(),
    }
    return plan.make("masked_loss", f"losses/{inputs['model'].name}/{plan.resolve.dataset(dataset).name}", spec, inputs)


def pairs(plan: Planner, lineage: Lineage) -> Artifact:
    """The pairs of an epoch of a lineage's last step."""
    step = plan.resolve.step(lineage.steps[-1])
    if not isinstance(step, PretrainStep) or not issubclass(objectives.load(step.objective).Fields, PairFields):
        raise EncoreError(f"{lineage}: {str(lineage.steps[-1])!r} has no pairs to learn from; name ict, bfs or wlp")
    collection = plan.resolve.dataset(step.collection).name
    inputs = {"tokens": tokens(plan, step.collection, plan.resolve.backbone(lineage))}
    fixed = {"kind": "pretrain", "collection": collection, "steps": 1, "batch": 2, "learning_rate": 1.0}
    spec = {"step": fixed | step.model_dump(mode="json", include=DECISIVE)}
    return plan.make("count_pairs", f"pairs/{collection}.{step.objective}", spec, inputs)


def _inspection(plan: Planner, dataset: str, what: dict[str, Any], inputs: dict[str, Artifact]) -> Artifact:
    stem = f"inspections/{inputs['model'].name}/{plan.resolve.dataset(dataset).name}.{what['kind']}"
    return plan.make("inspect_model", stem, {**what, "numerics": plan.numerics()}, inputs)

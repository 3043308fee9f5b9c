"""The plan of inspections: a model's outputs on a few texts, for figures and tables, which read these and no model."""

from typing import Any

from encore.config.lineage import Lineage
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Topics, names
from encore.plan.artifacts.collections import tokens
from encore.plan.planner import Planner

TEXTS = 300  # whose vectors are compared
LENGTH = 128  # tokens that are read of each, or as many as the model reads


def of_texts(plan: Planner, lineage: Lineage, seed: int, dataset: str, what: dict[str, Any]) -> Artifact:
    """A model's outputs on passages of a dataset: ``what`` has the ``kind`` of inspection and its fields.

    ``head: start`` takes the vocabulary head of the model that the lineage starts from.

    Raises:
        EncoreError: the dataset has no passages, and ``what`` names no text.
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
    """A query among the candidates of a model's own run over the ``split`` that ``what`` names.

    Raises:
        EncoreError: the dataset has no such split.
    """
    splits = plan.resolve.dataset(dataset).fields.splits
    if what["split"] not in splits:
        raise EncoreError(f"dataset {plan.resolve.dataset(dataset).name!r} has no split {what['split']!r}")
    topics = splits[what["split"]].topics or what["split"]
    run = plan.run(str(lineage), seed, dataset, Topics(topics, plan.config.depth))
    inputs = {role: run.inputs[role] for role in ("model", "tokens", "collection")} | {"run": run}
    passages, queries = plan.resolve.passage_length(lineage, dataset), plan.resolve.lengths(lineage)[1]
    return _inspection(plan, dataset, what | {"length": passages, "query_length": queries}, inputs)


def of_vectors(plan: Planner, lineage: Lineage, seed: int, dataset: str) -> Artifact:
    """How a model's vectors of passages of a dataset are distributed; the same passages for all models.

    Raises:
        EncoreError: the model is a bag of words, which has no states to pool.
    """
    backbone = plan.resolve.backbone(lineage)
    if backbone.architecture == "bow-mlp":
        raise EncoreError(f"{lineage}: a bag of words has no states to pool; leave the cell `not_applicable`")
    what = {"kind": "vectors", "texts": TEXTS, "sample": 0, "length": min(LENGTH, backbone.max_length)}
    return of_texts(plan, lineage, seed, dataset, what)


def _inspection(plan: Planner, dataset: str, what: dict[str, Any], inputs: dict[str, Artifact]) -> Artifact:
    spec = {"impl": plan.impl("inspect_model"), **what, "numerics": plan.numerics(), **names(inputs)}
    stem = f"inspections/{inputs['model'].name}/{plan.resolve.dataset(dataset).name}.{what['kind']}"
    return plan.make("inspect_model", stem, spec, inputs)

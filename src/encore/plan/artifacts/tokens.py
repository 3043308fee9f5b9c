"""Vocabularies, and token stores: a collection's texts as token ids."""

from encore.config.entries import Backbone
from encore.plan.artifact import Artifact, names, required
from encore.plan.artifacts import sources
from encore.plan.artifacts.collections import collection
from encore.plan.planner import Planner


def tokenizer(plan: Planner, backbone: Backbone) -> Artifact:
    """The vocabulary that a backbone reads: a checkpoint's own, or one trained on its texts."""
    if backbone.lineage:
        return tokenizer(plan, plan.resolve.backbone(plan.resolve.lineage(backbone.lineage)))
    impl = plan.impl("tokenizer")
    if backbone.start == "checkpoint":
        given = sources.of_backbone(plan, backbone)
        spec = {"impl": impl, **given.spec}
        return plan.make("tokenizer", "tokenizers/checkpoint", spec, given.inputs, given.folder)
    texts = collection(plan, required(backbone.collection, "collection", "a backbone without a checkpoint"))
    size = required(backbone.vocabulary, "vocabulary", "a backbone without a checkpoint")
    spec = {"impl": impl, "vocabulary": size, "collection": texts.name}
    return plan.make("tokenizer", f"tokenizers/wordpiece-{size}", spec, {"collection": texts})


def tokens(plan: Planner, dataset: str, backbone: Backbone) -> Artifact:
    """A dataset's texts as token ids of a backbone's vocabulary."""
    inputs = {"collection": collection(plan, dataset), "tokenizer": tokenizer(plan, backbone)}
    spec = {"impl": plan.impl("tokens"), **names(inputs)}
    return plan.make("tokens", f"tokens/{plan.resolve.dataset_name(dataset)}", spec, inputs)

"""Vocabularies, and token stores: a collection's texts as token ids."""

from encore.config.entries import Backbone
from encore.plan.artifact import Artifact, names, required
from encore.plan.artifacts import sources
from encore.plan.artifacts.collections import collection, named_collection
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
    return _named_tokens(plan, plan.resolve.dataset(dataset).name, backbone)


def _named_tokens(plan: Planner, name: str, backbone: Backbone) -> Artifact:
    """Of a dataset by its own name; those of a joined one are joined from those of its parts, to the same bytes."""
    texts, vocabulary = named_collection(plan, name), tokenizer(plan, backbone)
    inputs = {"collection": texts, "tokenizer": vocabulary}
    spec = {"impl": plan.impl("tokens"), **names(inputs)}
    if parts := plan.resolve.own(name).fields.made_from.parts:
        stores = {f"part_token.{number}": _named_tokens(plan, part, backbone) for number, part in enumerate(parts)}
        inputs = {**texts.inputs, **stores, "tokenizer": vocabulary}
    return plan.make("tokens", f"tokens/{name}", spec, inputs)

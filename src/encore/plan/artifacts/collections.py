"""Collections: datasets in the common form."""

from encore.errors import EncoreError
from encore.plan.artifact import Artifact, names
from encore.plan.artifacts import sources
from encore.plan.planner import Planner


def collection(plan: Planner, dataset: str) -> Artifact:
    """The dataset that has a name at this scale, in the common form."""
    return named_collection(plan, plan.resolve.dataset_name(dataset))


def named_collection(plan: Planner, name: str, above: tuple[str, ...] = ()) -> Artifact:
    """A dataset by its own name: what it is made `of` is the named one, whatever replaces that at this scale.

    Raises:
        EncoreError: it is made of itself, or of the passages of one that has articles only.
    """
    if name in above:
        raise EncoreError(f"dataset {name!r} is made of itself ({' of '.join([*above, name])}); fix `of`")
    if name in plan.collections:
        return plan.collections[name]
    fields = plan.resolve.dataset_fields(name)
    stage, base = f"collection.{fields.kind}", getattr(fields, "of", None)
    if base is not None:
        _refuse_without_passages(plan, name, base)
    inputs = {"collection": named_collection(plan, base, (*above, name))} if base is not None else {}
    for number, part in enumerate(getattr(fields, "parts", ())):
        inputs[f"part.{number}"] = named_collection(plan, part, (*above, name))
    inputs |= sources.of_dataset(plan, name, fields)
    spec = {"impl": plan.impl(stage), **plan.resolve.content(name), **names(inputs)}
    plan.collections[name] = plan.make(stage, f"collections/{name}", spec, inputs, getattr(fields, "path", None))
    return plan.collections[name]


def _refuse_without_passages(plan: Planner, name: str, base: str) -> None:
    """A part of one that is only pre-trained on has whole articles; distractors are cut from them as they are read."""
    fields = plan.resolve.dataset_fields(name)
    takes_articles = fields.only_articles or fields.kind.endswith("reqa")
    if plan.resolve.dataset_fields(base).only_articles and not takes_articles:
        raise EncoreError(
            f"dataset {name!r} is made of passages, and {base!r} has articles only, to pre-train on; let `of` name "
            "another, or choose whole `articles` of it (kind subset)"
        )

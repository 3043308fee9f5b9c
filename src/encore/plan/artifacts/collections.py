"""Collections: datasets in the common form."""

from encore.errors import EncoreError
from encore.plan.artifact import Artifact, names
from encore.plan.artifacts import sources
from encore.plan.planner import Planner


def collection(plan: Planner, dataset: str) -> Artifact:
    """The dataset that has a name at this scale, in the common form."""
    return named_collection(plan, plan.resolve.dataset(dataset).name)


def named_collection(plan: Planner, name: str, above: tuple[str, ...] = ()) -> Artifact:
    """A dataset by its own name: what it is made `of` is the named one, whatever replaces that at this scale.

    Raises:
        EncoreError: it is derived from itself, or from the passages of one that has articles only.
    """
    if name in above:
        raise EncoreError(f"dataset {name!r} is derived from itself ({' of '.join([*above, name])}); fix `of`")
    if name in plan.collections:
        return plan.collections[name]
    dataset = plan.resolve.own(name)
    fields, origin = dataset.fields, dataset.fields.made_from
    inputs = {}
    if origin.base is not None:
        if plan.resolve.own(origin.base).fields.only_articles and not fields.takes_articles:
            raise EncoreError(
                f"dataset {name!r} is made of passages, and {origin.base!r} has articles only, to pre-train on; let "
                "`of` name another, or choose whole `articles` of it (kind subset)"
            )
        inputs["collection"] = named_collection(plan, origin.base, (*above, name))
    for number, part in enumerate(origin.parts):
        inputs[f"part.{number}"] = named_collection(plan, part, (*above, name))
    inputs |= {"fetched": sources.ir_datasets(plan, name)} if origin.ids else {}
    inputs |= {f"source.{each}": sources.source(plan, each) for each in origin.sources}
    stage = f"collection.{fields.kind}"
    spec = {"impl": plan.impl(stage), **dataset.content, **names(inputs)}
    plan.collections[name] = plan.make(stage, f"collections/{name}", spec, inputs, origin.path)
    return plan.collections[name]

"""The plan of fusion: the weight, chosen on queries that are not reported, and the run that it gives."""

from __future__ import annotations

from typing import Any

from encore.config.datasets import serves
from encore.config.systems import Fusion
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Topics, names
from encore.plan.artifacts.collections import collection
from encore.plan.planner import Planner
from encore.storage.files import digest

CHOOSING = {"train": "train", "valid": "held-out"}  # role of a split: what `tuned_on` calls it
LISTS = ("sparse", "dense")


def run(plan: Planner, system: str, fields: Fusion, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    """Two runs over the queries of a split as one."""
    lists = _lists(plan, fields, seed, dataset, topics._replace(depth=fields.depth))
    how = fields.model_dump(mode="json", by_alias=True, exclude={"kind", *LISTS})
    impl = plan.impl("fuse")
    kind = f"{system}-s{seed}" if plan.resolve.has_chance(system) else system
    owner = f"{kind}-{digest([impl, how, *(each.owner for each in lists.values())])}"
    inputs = {**lists, "weight": _weight(plan, owner, fields, seed, dataset, topics.split)}
    spec = {"impl": impl, **topics._asdict(), "system": owner, **names(inputs)}
    spec["collection"] = collection(plan, dataset).name
    return plan.make("fuse", f"runs/{owner}/{plan.resolve.dataset_name(dataset)}.{topics}", spec, inputs)


def _weight(plan: Planner, owner: str, fields: Fusion, seed: int | None, dataset: str, requested: str) -> Artifact:
    """The weight of the sparse scores, from runs over samples of the training and of the held-out queries.

    Where the queries are parted in several ways, they are those of the way that ``requested`` belongs to.

    Raises:
        EncoreError: the dataset has no such queries, or does not know the measure.
    """
    splits = plan.resolve.dataset(dataset).splits
    choosing = {
        CHOOSING[split.role]: name
        for name, split in splits.items()
        if split.role in CHOOSING and serves(name, requested)
    }
    if fields.tuned_on not in choosing:
        role = next(role for role, role_name in CHOOSING.items() if role_name == fields.tuned_on)
        raise EncoreError(
            f"fusion {owner.rsplit('-', 1)[0]!r}: dataset {plan.resolve.dataset_name(dataset)!r} has no split of role "
            f"{role!r} to choose the weight on; add one, or set `tuned_on`"
        )
    inputs = {"collection": collection(plan, dataset)}
    for role_name, split in choosing.items():
        lists = _lists(plan, fields, seed, dataset, Topics(split, fields.depth, fields.queries, fields.sample))
        inputs |= {f"{role}_{role_name.replace('-', '_')}": made for role, made in lists.items()}
    spec = {
        "impl": plan.impl("tune_fusion"),
        "weights": fields.weights.values(),
        "measure": _expression(splits, fields.measure, plan.resolve.dataset_name(dataset)),
        "tuned_on": fields.tuned_on,
        "splits": choosing,
        "queries": fields.queries,
        "sample": fields.sample,
        **names(inputs),
    }
    return plan.make("tune_fusion", f"fusions/{owner}/{plan.resolve.dataset_name(dataset)}", spec, inputs)


def _lists(plan: Planner, fields: Fusion, seed: int | None, dataset: str, topics: Topics) -> dict[str, Artifact]:
    return {
        "sparse": plan.run(fields.sparse, seed, dataset, topics),
        "dense": plan.run(fields.dense, seed, dataset, topics),
    }


def _expression(splits: dict[str, Any], measure: str, dataset: str) -> str:
    """How the dataset spells a measure: as on the held-out queries, or else as on those that it reports."""
    ordered = sorted(splits.values(), key=lambda split: ["valid", "test", "graded", "train"].index(split.role))
    for split in ordered:
        if measure in split.measures:
            return str(split.measures[measure])
    known = {name for split in ordered for name in split.measures}
    raise EncoreError(
        f"a fusion is to be best at {measure!r}, which dataset {dataset!r} lacks{nearest(measure, known)}"
    )

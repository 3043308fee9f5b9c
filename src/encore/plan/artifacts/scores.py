"""Scores, every measure of every judged query of a system's run, and the latency of its queries."""

from encore.config.finetuning import FinetuneStep
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec, Topics, upstream
from encore.plan.artifacts.collections import collection, identical_ids
from encore.plan.artifacts.systems import shards_of
from encore.plan.planner import Planner

# What a measurement reads of a system whose runs the stage makes, by role; and shards if there are any.
READS: dict[str, tuple[str, ...]] = {
    "lucene_search": ("collection", "index"),
    "search": ("collection", "model", "tokens"),
    "search_index": ("collection", "model", "tokens", "index"),
    "fuse": ("sparse", "dense"),
    "rerank": ("first", "model", "tokens"),
}
# Its parts, whose own measurements it reads, as its entry calls them.
PARTS: dict[str, tuple[str, ...]] = {"fuse": ("sparse", "dense"), "rerank": ("first",)}


def scores(plan: Planner, system: str, seed: int | None, dataset: str, split: str) -> Artifact:
    """The measures of a system's run, for every split that shares the run's queries.

    ``seed`` is None for a system without chance in it.
    """
    fields, name = plan.resolve.dataset(dataset).fields, plan.resolve.dataset(dataset).name
    if not tested_fairly(plan, system, dataset, split):
        if fields.zero_shot:
            raise EncoreError(f"{system} learned from queries of {name!r} or its like; it is for zero-shot search")
        raise EncoreError(
            f"{system} learned from another draw of {name!r}, whose training may hold queries of {split!r}"
        )
    splits = fields.splits
    topics = splits[split].topics or split
    run = plan.run(system, seed, dataset, Topics(topics, plan.config.depth))
    measures = {
        name: kept.measures for name, kept in splits.items() if (kept.topics or name) == topics and kept.measures
    }
    inputs = {"run": run, "collection": collection(plan, dataset)}
    spec: Spec = {"splits": measures}
    by_answers = sorted(name for name in measures if splits[name].judged_by == "answers")
    spec |= {"judged_by_answers": by_answers} if by_answers else {}
    spec |= identical_ids(plan, dataset)
    if any("windows" in each.spec for each in upstream([inputs["collection"]])):  # also of a part of such a one
        spec |= {"scored_by_passages": True}
    return plan.make("evaluate", f"scores/{run.owner}/{name}.{topics}", spec, inputs)


def tested_fairly(plan: Planner, system: str, dataset: str, split: str) -> bool:
    """True if a system may answer a split: no step before it has learned from queries that another draw tests."""
    lineages = (each for own in plan.resolve.lineages_of(system) for each in plan.resolve.learned_from(own))
    steps = (plan.resolve.step(named) for lineage in lineages for named in lineage.steps)
    tuned = [step for step in steps if isinstance(step, FinetuneStep)]
    tested, learned = plan.resolve.dataset(dataset), [(plan.resolve.dataset(step.collection), step) for step in tuned]
    if tested.fields.zero_shot and any(tested.may_share_queries(each) for each, _ in learned):
        return False
    fair = tested.fields.serves
    return all(fair(step.train_split, split) for each, step in learned if each.questions == tested.questions)


def latency(plan: Planner, system: str, seed: int | None, dataset: str, split: str) -> Artifact | None:
    """The latency of a system on queries of a split; None for a kind that cannot be measured yet."""
    run = plan.run(system, seed, dataset, Topics(split, plan.config.depth))
    if run.stage not in READS or not {*PARTS.get(run.stage, ())} <= run.inputs.keys():
        return None
    inputs = {role: run.inputs[role] for role in READS[run.stage] if role in run.inputs}
    inputs |= shards_of(run.inputs)
    inputs.setdefault("collection", collection(plan, dataset))
    for number, role in enumerate(PARTS.get(run.stage, ())):
        measured = latency(plan, getattr(plan.resolve.system(system), role), seed, dataset, split)
        if measured is None:
            return None
        inputs[f"part{number}"] = measured
    how = plan.config.latency.model_dump()
    spec = {"kind": run.stage, "run": run.spec, **how}
    return plan.make(
        "measure_latency", f"latency/{run.owner}/{plan.resolve.dataset(dataset).name}.{split}", spec, inputs
    )

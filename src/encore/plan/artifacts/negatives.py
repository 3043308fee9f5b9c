"""The plan of negatives: sampled from a run over the training queries, listed in a file, or both together."""

from pathlib import Path

from encore import stages
from encore.config.finetuning import FinetuneStep
from encore.config.validation import nearest
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec, Topics, names
from encore.plan.artifacts.collections import Given, collection, given, no_negatives
from encore.plan.lineage import Lineage
from encore.plan.planner import Planner
from encore.storage.files import digest, remembered_contents

BM25 = "bm25"


def planned(plan: Planner, parent: Lineage, step: FinetuneStep, seed: int) -> Artifact | None:
    """The negatives that a fine-tuning step learns from; None where its batches, or the index, are enough.

    Args:
        parent: the lineage that the step follows, which mines unless the step names another.
    """
    _refuse_answers_in_lists(plan, step)
    miner = step.mined_by or str(parent)
    match step.negatives:
        case "bm25":
            return _listed_for_bm25(plan, _of_all(step), seed) or sampled_negatives(plan, BM25, step, seed)
        case "mined":
            return sampled_negatives(plan, miner, step, seed)
        case "bm25+mined":
            return _merged(plan, miner, step, seed)
        case "systems":
            if step.systems_file is None:
                raise EncoreError("`negatives: systems` come from a file; name it in the step's `systems_file`")
            return _listed(plan, _of_all(step), seed, "systems", step.systems_file)
        case "none" | "index":
            return None


def training_queries(step: FinetuneStep, seed: int) -> Topics:
    """The queries that a step learns from under a seed, and how deep it mines."""
    return Topics(step.train_split, step.depth, step.queries, step.sample_of(seed))


def _refuse_answers_in_lists(plan: Planner, step: FinetuneStep) -> None:
    """Refuse to leave answers out of a list, which nothing looks through; DPR publishes its own without any."""
    used = plan.resolve.dataset(step.collection).fields.listed_negatives_used
    own = used == "always" and "bm25" in step.negatives.split("+")
    if step.exclude_answers and (listed := step.systems_file or step.triples or ("the dataset" if own else None)):
        raise EncoreError(
            f"`exclude_answers` looks through what was retrieved, and negatives are listed ({listed}); take those with "
            "an answer out of the list, and let the step have `exclude_answers: false`"
        )


def sampled_negatives(plan: Planner, system: str, step: FinetuneStep, seed: int) -> Artifact:
    """Negatives sampled by a step's recipe from a system's run over the training queries."""
    topics = training_queries(step, seed)
    run = plan.run(system, seed, step.collection, topics)
    inputs = {"run": run, "collection": collection(plan, step.collection)}
    recipe: Spec = {"depth": step.depth, "keep": step.negatives_kept, "exclude_judged": step.exclude_judged}
    recipe |= {"seed": seed}
    recipe |= {"first_rank": step.first_rank} if step.first_rank > 1 else {}
    if step.positives == "answers" or step.exclude_answers:  # how retrieved passages that contain an answer are used
        recipe["answers"] = "positives" if step.positives == "answers" else "left out"
    recipe |= no_negatives(plan, step.collection)
    recipe |= {"negatives_below": step.negatives_below} if step.negatives_below else {}
    if step.kept == "first":
        recipe |= {"kept": step.kept}
        inputs |= {role: first for role, first in run.inputs.items() if role == "first"}  # the order before reranking
    folder = f"negatives/{run.owner}/{plan.resolve.dataset(step.collection).name}.{topics}"
    return plan.make("negatives", folder, {"split": topics.split, **recipe}, inputs)


def _listed_for_bm25(plan: Planner, step: FinetuneStep, seed: int) -> Artifact | None:
    """The listed negatives that replace those of BM25's run for a step, if it has any."""
    used = plan.resolve.dataset(step.collection).fields.listed_negatives_used
    published = step.published_negatives or used == "always"
    if not (published or step.triples):
        return None
    if step.positives == "answers":
        raise EncoreError(
            "`positives: answers` come from BM25's run, and the step takes its negatives from a list instead ("
            f"{'the dataset' if published else step.triples}); give the step `positives: judged`, or "
            "`negatives: mined`"
        )
    if not published:
        return _listed(plan, step, seed, "triples", step.triples)
    if used == "never":
        raise EncoreError(
            f"dataset {plan.resolve.dataset(step.collection).name!r} lists no negatives; let the step have "
            "`published_negatives: false`, and BM25's are drawn"
        )
    return _listed(plan, step, seed, "published")


def _listed(plan: Planner, step: FinetuneStep, seed: int, form: str, source: str | None = None) -> Artifact:
    """Negatives that are listed: in the collection, or in a file of triples or of several systems, fetched or not."""
    files = given(plan, source, lambda path: _content(plan, path)) if source is not None else Given({}, {})
    inputs = {"collection": collection(plan, step.collection), **files.inputs}
    recipe: Spec = {"keep": step.negatives_kept, "seed": seed}
    if form == "systems":
        recipe = {"margin": step.margin, "per_system": step.per_system}
    topics = training_queries(step, seed)
    queries = {"split": topics.split, "queries": topics.queries, "sample": topics.sample}
    unjudged = no_negatives(plan, step.collection)
    identity = {"form": form, **files.spec, **names(files.inputs), "exclude_judged": step.exclude_judged, **unjudged}
    stage = "negatives_from_dataset" if source is None else "negatives_from_file"
    spec = {"form": form, **files.spec, "exclude_judged": step.exclude_judged, **unjudged, **queries, **recipe}
    folder = f"negatives/{form}-{digest(identity)}/{plan.resolve.dataset(step.collection).name}.{topics}"
    return plan.make(stage, folder, spec, inputs, files.folder)


def _content(plan: Planner, path: str) -> str:
    """The digest of a user's file of negatives."""
    if not Path(path).is_file():
        raise EncoreError(
            f"the file of negatives {path} is missing; put it there, or name another, or a source, in the step"
            f"{nearest(path, plan.catalogue.sources)}"
        )
    return remembered_contents({"file": Path(path)})["file"]


def _merged(plan: Planner, miner: str, step: FinetuneStep, seed: int) -> Artifact:
    """BM25's and mined negatives together; further positives are those of the mined."""
    judged = _judged_positives(step)
    bm25 = _listed_for_bm25(plan, judged, seed) or sampled_negatives(plan, BM25, judged, seed)
    inputs = {"bm25": bm25, "mined": sampled_negatives(plan, miner, step, seed)}
    spec = {"from": [each.owner for each in inputs.values()]}
    identity = {"impl": stages.load("merged_negatives").impl, **names(inputs), **spec}
    folder = f"negatives/bm25+mined-{digest(identity)}/{bm25.name.rsplit('-', 1)[0]}"
    return plan.make("merged_negatives", folder, spec, inputs)


def _of_all(step: FinetuneStep) -> FinetuneStep:
    """The recipe for all training queries: a file is read once, and a sample drawn of the queries that it lists."""
    return step.model_copy(update={"queries": None, "sample": 0})


def _judged_positives(step: FinetuneStep) -> FinetuneStep:
    """The recipe without further positives; what answers a question is still not a negative."""
    if step.positives == "judged":
        return step
    return step.model_copy(update={"positives": "judged", "exclude_answers": True})

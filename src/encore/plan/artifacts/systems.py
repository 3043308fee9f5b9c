"""Runs: a system's ranking for the queries of a split. One function a kind of system; lineages are searched densely."""

from collections.abc import Callable
from typing import Any

from encore.config.lineage import Lineage, StepName, split_index
from encore.config.systems import Bm25, Rerank
from encore.config.validation import explained
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, Spec, Topics, names
from encore.plan.artifacts import dense, doc2query, fusion
from encore.plan.artifacts.collections import collection
from encore.plan.artifacts.tokens import tokens
from encore.plan.planner import Planner
from encore.storage.files import digest


def run(plan: Planner, system: str, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    """A system's run over the queries of a split.

    Args:
        system: an entry of systems.yaml, or a lineage, perhaps with the index that it is searched in.
        seed: None where the system has no chance in it.

    Raises:
        EncoreError: a lineage without a seed, or one whose model gives texts no single vector.
    """
    if system in plan.catalogue.systems:
        fields: Any = plan.resolve.system(system)
        place = f"system {system!r}"
        return explained(lambda kind: kind(plan, system, fields, seed, dataset, topics), KINDS[fields.kind], place)
    if seed is None:
        raise EncoreError(f"system {system!r} is trained, so its run needs a seed")
    name, index = split_index(system)
    lineage = plan.resolve.lineage(name)
    if (scorer := plan.resolve.scorer(lineage)) != "vector":
        raise EncoreError(
            f"lineage {system!r} ends with a {scorer} scorer, whose texts have no single vector to search; "
            "rank another system's results again with it: an entry of kind `rerank` in systems.yaml"
        )
    if index is not None:
        return _indexed(plan, lineage, index, seed, dataset, topics)
    return dense.run(plan, lineage, seed, dataset, topics)


def _bm25(plan: Planner, system: str, fields: Bm25, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    """A BM25 run over the queries of a split; there is no chance in it."""
    impl = plan.impl("lucene_search")
    model: Spec = {"k1": fields.k1, "b": fields.b}
    added = {} if fields.expansion is None else {"expansion": doc2query.identity(plan, fields.expansion)}
    name = f"{system}-{digest([impl, {**model, **added}])}"
    inputs = {"index": lucene_index(plan, dataset, fields.expansion), "collection": collection(plan, dataset)}
    spec = {"impl": impl, **model, **topics._asdict(), "system": name, **names(inputs)}
    return plan.make("lucene_search", f"runs/{name}/{plan.resolve.dataset_name(dataset)}.{topics}", spec, inputs)


def lucene_index(plan: Planner, dataset: str, expansion: str | None) -> Artifact:
    """Lucene's index of a dataset's passages, each with its predicted queries where there are any."""
    inputs = {"collection": collection(plan, dataset)}
    folder = f"indexes/lucene/{plan.resolve.dataset_name(dataset)}"
    if expansion is not None:
        inputs["predicted_queries"] = doc2query.predicted_queries(plan, expansion, dataset)
        folder += f"+{plan.resolve.doc2query_name(expansion)}"
    spec = {"impl": plan.impl("lucene_index"), **names(inputs)}
    return plan.make("lucene_index", folder, spec, inputs)


def _rerank(plan: Planner, system: str, fields: Rerank, seed: int, dataset: str, topics: Topics) -> Artifact:
    """The first stage's run over the queries of a split, its best ``depth`` in the order of the ranker's scores."""
    ranker = plan.resolve.lineage(fields.ranker)
    inputs = {
        "first": plan.run(fields.first, seed, dataset, topics._replace(depth=max(topics.depth, fields.depth))),
        "model": plan.model(ranker, seed),
        "tokens": tokens(plan, dataset, plan.resolve.backbone(ranker)),
    }
    impl, how = plan.impl("rerank"), {"reranked": fields.depth, "numerics": plan.numerics()}
    owner = f"{system}-s{seed}-{digest([impl, how, inputs['first'].owner, inputs['model'].name])}"
    spec = {"impl": impl, **topics._asdict(), **how, "system": owner, **names(inputs)}
    spec["collection"] = collection(plan, dataset).name
    return plan.make("rerank", f"runs/{owner}/{plan.resolve.dataset_name(dataset)}.{topics}", spec, inputs)


def _indexed(plan: Planner, lineage: Lineage, index: StepName, seed: int, dataset: str, topics: Topics) -> Artifact:
    """A lineage's run over the queries of a split, searched in an index of that type.

    The exact run over the same queries is read too: the recall of its answers is reported with the run.
    """
    exact = dense.run(plan, lineage, seed, dataset, topics)
    inputs = {role: exact.inputs[role] for role in ("model", "tokens", "collection")}
    inputs |= {"index": _index(plan, lineage, index, seed, dataset), "exact": exact}
    system = f"{inputs['model'].name}@{index}"
    how = {"query_length": plan.resolve.lengths(lineage)[1], "numerics": plan.numerics()}
    how |= {"search": plan.resolve.index_type(index).searching(), "system": system}
    spec = {"impl": plan.impl("search_index"), **topics._asdict(), **how, **names(inputs)}
    return plan.make("search_index", f"runs/{system}/{plan.resolve.dataset_name(dataset)}.{topics}", spec, inputs)


def _index(plan: Planner, lineage: Lineage, index: StepName, seed: int, dataset: str) -> Artifact:
    """One index of a type over a dataset's vectors; how it will be searched is no part of it."""
    fields, backbone = plan.resolve.index_type(index), plan.resolve.backbone(lineage)
    fields.check(backbone.projection_dim or backbone.hidden)
    shards = dense.shards(plan, lineage, seed, dataset)
    spec = {"impl": plan.impl("build_index"), "index": fields.building(), "vectors": shards[0].owner}
    inputs = {f"shard{number}": shard for number, shard in enumerate(shards)}
    kept = StepName(index.name, tuple(pair for pair in index.overrides if pair[0] not in fields.SEARCH))
    owner = f"{plan.model(lineage, seed).name}@{kept}"
    return plan.make("build_index", f"indexes/{owner}/{plan.resolve.dataset_name(dataset)}", spec, inputs)


# How the run of each kind of system is planned: (plan, name, fields, seed, dataset, topics).
KINDS: dict[str, Callable[..., Artifact]] = {"bm25": _bm25, "fusion": fusion.run, "rerank": _rerank}

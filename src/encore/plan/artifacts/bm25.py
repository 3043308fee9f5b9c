"""The plan of BM25: Lucene's index of a collection, perhaps with predicted queries, and a run over it."""

from __future__ import annotations

from encore.config.systems import Bm25
from encore.plan.artifact import Artifact, Spec, Topics, names
from encore.plan.artifacts import doc2query
from encore.plan.artifacts.collections import collection
from encore.plan.planner import Planner
from encore.storage.files import digest


def run(plan: Planner, system: str, fields: Bm25, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    """A BM25 run over the queries of a split; there is no chance in it."""
    impl = plan.impl("lucene_search")
    model: Spec = {"k1": fields.k1, "b": fields.b}
    added = {} if fields.expansion is None else {"expansion": doc2query.identity(plan, fields.expansion)}
    name = f"{system}-{digest([impl, {**model, **added}])}"
    inputs = {"index": index(plan, dataset, fields.expansion), "collection": collection(plan, dataset)}
    spec = {"impl": impl, **model, **topics._asdict(), "system": name, **names(inputs)}
    return plan.make("lucene_search", f"runs/{name}/{plan.resolve.dataset_name(dataset)}.{topics}", spec, inputs)


def index(plan: Planner, dataset: str, expansion: str | None) -> Artifact:
    """Lucene's index of a dataset's passages, each with its predicted queries where there are any."""
    inputs = {"collection": collection(plan, dataset)}
    folder = f"indexes/lucene/{plan.resolve.dataset_name(dataset)}"
    if expansion is not None:
        inputs["predicted_queries"] = doc2query.predicted_queries(plan, expansion, dataset)
        folder += f"+{plan.resolve.doc2query_name(expansion)}"
    spec = {"impl": plan.impl("lucene_index"), **names(inputs)}
    return plan.make("lucene_index", folder, spec, inputs)

"""The plan of BM25: Lucene's index of a collection, perhaps with predicted queries, and a run over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from encore.config.systems import Bm25
from encore.plan.artifact import Artifact, Spec, Topics, names
from encore.plan.artifacts import expansions
from encore.storage.files import digest

if TYPE_CHECKING:
    from encore.plan.artifacts.runs import Runs


def run(plan: Runs, system: str, fields: Bm25, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    """A BM25 run over the queries of a split; there is no chance in it."""
    impl = plan.impl("lucene_search")
    model: Spec = {"k1": fields.k1, "b": fields.b}
    added = {} if fields.expansion is None else {"expansion": expansions.identity(plan, fields.expansion)}
    name = f"{system}-{digest([impl, {**model, **added}])}"
    inputs = {"index": index(plan, dataset, fields.expansion), "collection": plan.collection(dataset)}
    spec = {"impl": impl, **model, **topics._asdict(), "system": name, **names(inputs)}
    return plan.make("lucene_search", f"runs/{name}/{plan.dataset_name(dataset)}.{topics}", spec, inputs)


def index(plan: Runs, dataset: str, expansion: str | None) -> Artifact:
    """Lucene's index of a dataset's passages, each with its predicted queries where there are any."""
    inputs = {"collection": plan.collection(dataset)}
    folder = f"indexes/lucene/{plan.dataset_name(dataset)}"
    if expansion is not None:
        inputs["predicted_queries"] = expansions.expanded(plan, expansion, dataset)
        folder += f"+{plan.expansion_name(expansion)}"
    spec = {"impl": plan.impl("lucene_index"), **names(inputs)}
    return plan.make("lucene_index", folder, spec, inputs)

"""The plan of BM25: Lucene's index of a collection, and a run over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from encore.planning.artifact import Artifact, Topics, names
from encore.storage import digest
from encore.systems import Bm25

if TYPE_CHECKING:
    from encore.planning.runs import Runs


def run(plan: Runs, system: str, fields: Bm25, seed: int | None, dataset: str, topics: Topics) -> Artifact:
    """A BM25 run over the queries of a split; there is no chance in it."""
    collection = plan.collection(dataset)
    index_spec = {"impl": plan.impl("lucene_index"), "collection": collection.name}
    index_folder = f"indexes/lucene/{plan.dataset_name(dataset)}"
    index = plan.make("lucene_index", index_folder, index_spec, {"collection": collection})
    impl = plan.impl("lucene_search")
    model = {"k1": fields.k1, "b": fields.b}
    name = f"{system}-{digest([impl, model])}"
    inputs = {"index": index, "collection": collection}
    spec = {"impl": impl, **model, **topics._asdict(), "system": name, **names(inputs)}
    return plan.make("lucene_search", f"runs/{name}/{plan.dataset_name(dataset)}.{topics}", spec, inputs)

"""Index a collection with Lucene: all that a model reads of each passage, as one text."""

import time
from pathlib import Path

from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import PLAIN, Needs, Size


class Spec(Fields):
    """Nothing but the names of what is indexed."""


class Inputs(Roles):
    """The collection, and predicted queries to index its passages with."""

    collection: Path
    predicted_queries: Path | None = None


class LuceneIndex(Stage[Spec, Inputs]):
    """An index that Anserini and Pyserini open."""

    does = "indexes"

    def needs(self, size: Size) -> Needs:
        tokens = size.collection.tokens  # 1.5 million in a second: 2.2 million passages in 108 s
        return Needs(PLAIN + size.java + 40 * size.passages, disk=tokens, core_seconds=tokens / 1e6)

    def make(self, job: Job) -> Facts:
        from encore.data.collection import Collection
        from encore.retrieval.doc2query.predictions import expanded
        from encore.retrieval.lucene import build_lucene_index

        started, collection, predicted = time.time(), Collection(self.inputs.collection), self.inputs.predicted_queries
        plain = ((name, " ".join(text)) for name, text in collection.texts())
        passages = expanded(collection, predicted) if predicted else plain
        count = build_lucene_index(passages, job.output, job.java_memory_mb, collection.language)
        print(f"lucene_index: {count} passages in {time.time() - started:.1f} s")
        return {"results": {"passages": count}}


STAGE = LuceneIndex

"""Index a collection with Lucene: all that a model reads of each passage, as one text."""

import time
from pathlib import Path

from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields):
    """Nothing but the names of what is indexed."""


class Inputs(Roles):
    """The collection, and predicted queries to index its passages with."""

    collection: Path
    predicted_queries: Path | None = None


class LuceneIndex(Stage[Spec, Inputs]):
    """An index that Anserini and Pyserini open."""

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

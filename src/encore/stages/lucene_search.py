"""Rank passages with BM25."""

import time
from pathlib import Path

from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields):
    """BM25's parameters, and which queries."""

    k1: float
    b: float
    split: str
    depth: int
    queries: int | None
    sample: int
    system: str  # the run's tag


class Inputs(Roles):
    """Lucene's index, and the collection, which has the queries."""

    index: Path
    collection: Path


class LuceneSearch(Stage[Spec, Inputs]):
    """A run."""

    impl = 2

    def make(self, job: Job) -> Facts:
        from encore.data.collection import Collection, topics
        from encore.data.runs import describe, write_run
        from encore.retrieval.lucene import search_bm25

        spec, started, collection = self.spec, time.time(), Collection(self.inputs.collection)
        texts = collection.queries()
        queries = {query: texts[query] for query in topics(collection, spec.split, spec.queries, spec.sample)}
        found = search_bm25(
            self.inputs.index,
            queries,
            k1=spec.k1,
            b=spec.b,
            depth=spec.depth,
            threads=job.threads,
            memory_mb=job.java_memory_mb,
            language=collection.language,
        )
        step = {"name": "bm25", "method": "Lucene BM25Similarity", "k1": spec.k1, "b": spec.b, "hits": spec.depth}
        header = describe(spec.system, collection=self.inputs.collection.name, split=spec.split, retrieval=[step])
        write_run(job.output, found, header)
        seconds = time.time() - started
        print(f"lucene_search: {len(found)} of {len(queries)} queries answered in {seconds:.1f} s")
        return {"results": {"queries": len(queries), "answered": len(found)}}


STAGE = LuceneSearch

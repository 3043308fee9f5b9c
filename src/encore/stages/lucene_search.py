"""Rank passages with BM25."""

import time
from pathlib import Path

from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import PLAIN, Needs, Size

HITS = 4e6  # that are read together, and a Java process keeps in HEAP bytes: as in retrieval/lucene.py
HEAP = 2.0**30


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

    def needs(self, size: Size) -> Needs:
        """A core ranks 670 million passages in a second, or 620 of Wikipedia's, and unpacks ids of 90,000 to 120,000.

        That is 23 ms for a query in 8.8 million made-up passages, where Pyserini's pages print 77 in MS MARCO's. Hits
        take 190 bytes when they are put in order, but Java has ended by then and left more than that.
        """
        held = 40 * min(size.lines, HITS) + 18 * size.lines + 100 * size.passages
        seconds = size.queries * size.passages / 330e6 + size.lines / 100e3
        return Needs(PLAIN + min(size.java, HEAP) + held, size.run_bytes, core_seconds=seconds)

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

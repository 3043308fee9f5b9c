"""Rank passages by what an index of a named type finds, and measure its recall of the exact answer."""

from pathlib import Path
from typing import Any

from encore.models.flops import embedding
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.build_index import built, looked_at
from encore.stages.needs import FP32, LINES, PROCESS, Needs, Size


class Spec(Fields):
    """Which queries, how they are encoded, and how the index is searched."""

    split: str
    depth: int
    queries: int | None
    sample: int
    query_length: int  # tokens
    numerics: dict[str, Any]
    search: dict[str, Any]  # the fields of its type that decide the search
    system: str  # the run's tag


class Inputs(Roles):
    """The model, the collection's tokens and queries, the index, and the exact run over the same queries."""

    model: Path
    tokens: Path
    collection: Path
    index: Path
    exact: Path


class SearchIndex(Stage[Spec, Inputs]):
    """A run."""

    impl = 3
    devices = "one GPU"

    def needs(self, size: Size) -> Needs:
        """A core does 14e9 operations with vectors in 16 bits, and checks 430 million bytes of the index's digest."""
        shape, length, built_by = size.shape, self.spec.query_length, size.given["index"]["index"]
        index, _, _ = built(built_by, size.passages, shape.dimension)
        products = looked_at({**built_by, **self.spec.search}, size.passages, shape.dimension, self.spec.depth)
        return Needs(
            memory=PROCESS + FP32 * size.parameters + index + 260 * size.lines + 72 * size.passages,
            disk=size.run_bytes,
            operations=size.queries * embedding(shape, 1, size.query_tokens(length)),
            gpu_memory=size.reading_memory(length),
            core_seconds=size.lines / LINES + 2 * size.queries * products / 10e9 + index / 450e6,
        )

    def make(self, job: Job) -> Facts:
        from encore.data.collection import QuerySample
        from encore.retrieval.dense import Queries
        from encore.retrieval.indexing import answer_from_index

        spec, given = self.spec, self.inputs
        asked = QuerySample(spec.split, spec.queries, spec.sample)
        queries = Queries(
            asked=asked, depth=spec.depth, query_length=spec.query_length, numerics=spec.numerics, system=spec.system
        )
        places = (given.model, given.tokens, given.collection, given.index, given.exact, job.output)
        results, search = answer_from_index(queries, spec.search, *places)
        return {"results": results, "search": search}


STAGE = SearchIndex

"""Rank passages by the inner product with the query's vector, exactly, over all shards."""

from pathlib import Path
from typing import Any

from encore.models.flops import embedding, product
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import FP32, LINES, PROCESS, Needs, Size


class Spec(Fields):
    """Which queries, how they are encoded, and whose vectors are searched."""

    split: str
    depth: int
    queries: int | None
    sample: int
    query_length: int  # tokens
    numerics: dict[str, Any]
    index: str  # the folder of the shards
    system: str  # the run's tag
    size: str | float | int | None = None  # of the part of a growing collection that is searched


class Inputs(Roles):
    """The model, the collection's tokens and queries, its shards, and the order in which a collection grows."""

    model: Path
    tokens: Path
    collection: Path
    shards: list[Path]
    subset: Path | None = None


class Search(Stage[Spec, Inputs]):
    """A run."""

    impl = 4
    devices = "one GPU"
    unnamed = frozenset({"shards"})

    def needs(self, size: Size) -> Needs:
        """Vectors of passages are read from their mapped file, a tile at a time."""
        shape, queries, length = size.shape, size.queries, self.spec.query_length
        encoding, products = embedding(shape, 1, size.query_tokens(length)), product(1, shape.dimension, size.passages)
        held = FP32 * (size.parameters + queries * shape.dimension) + 42 * size.lines + 72 * size.passages
        return Needs(
            memory=PROCESS + held,
            disk=size.run_bytes,
            operations=queries * (encoding + products),
            precision="fp32",
            gpu_memory=size.reading_memory(length),
            core_seconds=size.lines / LINES,
        )

    def make(self, job: Job) -> Facts:
        from encore.data.collection import QuerySample
        from encore.retrieval.dense import Queries, answer_exactly
        from encore.retrieval.nested_corpora import members

        spec, given = self.spec, self.inputs
        asked = QuerySample(spec.split, spec.queries, spec.sample)
        queries = Queries(
            asked=asked, depth=spec.depth, query_length=spec.query_length, numerics=spec.numerics, system=spec.system
        )
        places = (given.model, given.tokens, given.collection, given.shards, job.output)
        searched = members(given.subset, spec.size) if given.subset and spec.size else None
        results, search = answer_exactly(queries, *places, searched)
        return {"results": results, "search": search}


STAGE = Search

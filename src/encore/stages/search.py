"""Rank passages by the inner product with the query's vector, exactly, over all shards.

Where each shard was searched by a separate job (``search_shard``), what they found is merged.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from encore.models.flops import embedding, product
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import FP32, LINES, PROCESS, Needs, Size

if TYPE_CHECKING:
    from encore.retrieval.dense import Queries

HITS = 10e6  # of shards, merged in a second: 15 million of 16 shards on a busy core


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
    """The model, the collection's tokens and queries, its shards or the hits in them, and how a collection grows."""

    model: Path
    tokens: Path
    collection: Path
    shards: list[Path] = []
    hits: list[Path] = []
    subset: Path | None = None


class Search(Stage[Spec, Inputs]):
    """A run."""

    impl = 4
    devices = "one GPU"
    unnamed = frozenset({"shards", "hits"})

    def needs(self, size: Size) -> Needs:
        parts = sum(role.startswith("hit") for role in size.given)
        if not parts:
            return searching(self.spec, size, size.passages)
        together = 32 * parts * min(size.queries, 256) * self.spec.depth  # hits that are sorted at once
        memory = PROCESS + 42 * size.lines + 16 * size.passages + together
        return Needs(memory, size.run_bytes, core_seconds=size.lines / LINES + parts * size.lines / HITS)

    def make(self, job: Job) -> Facts:
        from encore.retrieval.dense import answer_exactly
        from encore.retrieval.nested_corpora import members
        from encore.retrieval.shard_hits import merge_hits

        spec, given = self.spec, self.inputs
        places = (given.model, given.tokens, given.collection)
        if given.hits:
            return {"results": merge_hits(asked(spec), *places, given.hits, job.output)}
        searched = members(given.subset, spec.size) if given.subset and spec.size else None
        results, search = answer_exactly(asked(spec), *places, given.shards, job.output, searched)
        return {"results": results, "search": search}


def asked(spec: Spec) -> Queries:
    """The queries that a spec names, and how they are answered."""
    from encore.data.collection import QuerySample
    from encore.retrieval.dense import Queries

    return Queries(
        asked=QuerySample(spec.split, spec.queries, spec.sample),
        depth=spec.depth,
        query_length=spec.query_length,
        numerics=spec.numerics,
        system=spec.system,
    )


def searching(spec: Spec, size: Size, passages: float) -> Needs:
    """What a search of so many passages takes; their vectors are read from a mapped file, a tile at a time."""
    shape, queries, length = size.shape, size.queries, spec.query_length
    encoding, products = embedding(shape, 1, size.query_tokens(length)), product(1, shape.dimension, passages)
    held = FP32 * (size.parameters + queries * shape.dimension) + 42 * size.lines + 72 * passages
    return Needs(
        memory=PROCESS + held,
        disk=size.run_bytes,
        operations=queries * (encoding + products),
        precision="fp32",
        gpu_memory=size.reading_memory(length),
        core_seconds=size.lines / LINES,
    )


STAGE = Search

"""Rank passages by the inner product with the query's vector, exactly, over all shards."""

from pathlib import Path
from typing import Any

from encore.stages.base import Facts, Fields, Job, Roles, Stage


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

    def make(self, job: Job) -> Facts:
        from encore.retrieval.dense import answer_exactly

        given = self.inputs
        places = (given.model, given.tokens, given.collection, given.shards, job.output, given.subset)
        results, search = answer_exactly(self.spec.dumped(), *places)
        return {"results": results, "search": search}


STAGE = Search

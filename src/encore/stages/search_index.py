"""Rank passages by what an index of a named type finds, and measure its recall of the exact answer."""

from pathlib import Path
from typing import Any

from encore.stages.base import Facts, Fields, Job, Roles, Stage


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

    def make(self, job: Job) -> Facts:
        from encore.retrieval.indexing import answer_from_index

        given = self.inputs
        places = (given.model, given.tokens, given.collection, given.index, given.exact, job.output)
        results, search = answer_from_index(self.spec.dumped(), *places)
        return {"results": results, "search": search}


STAGE = SearchIndex

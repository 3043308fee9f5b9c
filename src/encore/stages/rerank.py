"""Rank the best results of a run again with a trained scorer, or a whole collection by vectors of tokens."""

from pathlib import Path
from typing import Any

from encore.stages.base import Facts, Fields, Job, Roles, Stage


class Spec(Fields):
    """Which queries, and how many results of each are ranked again."""

    split: str
    depth: int
    queries: int | None
    sample: int
    reranked: int | None = None
    numerics: dict[str, Any]
    system: str  # the run's tag
    collection: str = ""  # its folder's name, where the queries are those of a first run


class Inputs(Roles):
    """The scorer, the collection's tokens, and the first run, or the collection whose queries are answered."""

    model: Path
    tokens: Path
    first: Path | None = None
    collection: Path | None = None


class Rerank(Stage[Spec, Inputs]):
    """A run."""

    impl = 3
    devices = "one GPU"
    resumes = True

    def make(self, job: Job) -> Facts:
        from encore.retrieval.rerank import answer_by_tokens, answer_reranked

        spec, given = self.spec.dumped(), self.inputs
        if given.first:
            return {"results": answer_reranked(spec, given.model, given.tokens, given.first, job.output, job.state)}
        assert given.collection is not None
        spec["collection"] = given.collection.name
        return {"results": answer_by_tokens(spec, given.model, given.tokens, given.collection, job.output)}


STAGE = Rerank

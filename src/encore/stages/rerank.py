"""Rank the best results of a run again with a trained scorer, or a whole collection by vectors of tokens."""

from pathlib import Path
from typing import Any

from encore.models.flops import forward
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import PROCESS, Needs, Size


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

    def needs(self, size: Size) -> Needs:
        """Of a first stage each query's best are read, of a whole collection each passage once."""
        reranked = self.spec.reranked
        operations, on_gpu = scoring(size, size.queries * min(reranked, size.passages) if reranked else size.passages)
        memory = PROCESS + 260 * size.lines + 48 * size.passages
        return Needs(memory, size.run_bytes, operations=operations, gpu_memory=on_gpu)

    def make(self, job: Job) -> Facts:
        from encore.data.collection import QuerySample
        from encore.retrieval.rerank import Reranking, answer_by_tokens, answer_reranked

        spec, given = self.spec, self.inputs
        queries = Reranking(
            asked=QuerySample(spec.split, spec.queries, spec.sample),
            depth=spec.depth,
            numerics=spec.numerics,
            system=spec.system,
            collection=given.collection.name if given.collection else spec.collection,
            reranked=spec.reranked or 0,
        )
        if given.first:
            return {"results": answer_reranked(queries, given.model, given.tokens, given.first, job.output, job.state)}
        assert given.collection is not None
        return {"results": answer_by_tokens(queries, given.model, given.tokens, given.collection, job.output)}


def scoring(size: Size, pairs: float) -> tuple[float, float]:
    """Operations of a trained scorer, which reads query and passage together or apart, and bytes on its GPU."""
    step = size.given["model"].get("step", {})
    length = step.get("length", size.shape.max_length)
    read = size.passage_tokens(length)
    if step.get("scorer") != "cross-encoder":
        return (pairs + size.queries) * forward(size.shape, 1, read), size.reading_memory(length)
    asked = step["query_length"]
    return pairs * forward(size.shape, 1, read + size.query_tokens(asked) - 1), size.reading_memory(length + asked)


STAGE = Rerank

"""Draw the order in which a collection grows from what is relevant, for measures by the number of passages."""

from pathlib import Path

from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import PLAIN, Needs, Size


class Spec(Fields):
    """Which queries, and the seed of the order."""

    split: str
    depth: int  # BM25's first results of each query, from which the collection grows
    queries: int | None
    sample: int
    order: int


class Inputs(Roles):
    """BM25's run over the queries, and the collection."""

    run: Path
    collection: Path


class NestedCorpora(Stage[Spec, Inputs]):
    """The place of each passage in the order."""

    def needs(self, size: Size) -> Needs:
        return Needs(PLAIN + 240 * size.passages)

    def make(self, job: Job) -> Facts:
        from encore.data.collection import QuerySample
        from encore.retrieval.nested_corpora import order_passages

        spec, places = self.spec, (self.inputs.run, self.inputs.collection, job.output)
        asked = QuerySample(spec.split, spec.queries, spec.sample)
        return {"results": order_passages(asked, *places, depth=spec.depth, seed=spec.order)}


STAGE = NestedCorpora

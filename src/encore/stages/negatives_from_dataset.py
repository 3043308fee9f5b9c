"""Sample negatives for training queries from those that a collection was published with."""

from pathlib import Path
from typing import Literal

from encore.config.datasets import Ignored
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import PLAIN, Needs, Size


class Spec(Fields, Ignored):
    """Which queries, and the recipe."""

    form: Literal["published"]
    exclude_judged: bool
    split: str
    queries: int | None
    sample: int
    keep: int
    seed: int


class Inputs(Roles):
    """The collection, which has the list."""

    collection: Path


class NegativesFromDataset(Stage[Spec, Inputs]):
    """A file of the negatives of each query."""

    def needs(self, size: Size) -> Needs:
        return Needs(PLAIN + 13_000 * size.queries, disk=180 * size.queries)

    def make(self, job: Job) -> Facts:
        from encore.data.collection import Collection, topics
        from encore.data.judged import no_negatives
        from encore.finetuning.negatives import mining

        spec, collection = self.spec, Collection(self.inputs.collection)
        asked = topics(collection, spec.split, spec.queries, spec.sample)
        drawn, counts = mining.published(
            collection,
            spec.split,
            asked,
            keep=spec.keep,
            seed=spec.seed,
            exclude_judged=spec.exclude_judged,
            excluded=no_negatives(collection, spec.split, spec),
        )
        print(f"negatives: {counts.kept} for {counts.queries} queries, {counts.unknown} of no passage")
        return {"results": mining.write_negatives(job.output, drawn, counts)}


STAGE = NegativesFromDataset

"""Choose the weight of the sparse scores in a fusion, on queries that no table reports."""

import math
from pathlib import Path

from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import LINES, PLAIN, Needs, Size


class Spec(Fields):
    """The weights that are tried, and on what."""

    weights: list[float]
    measure: str
    tuned_on: str  # ``train`` or ``held-out``
    splits: dict[str, str]  # by the same names
    queries: int | None
    sample: int


class Inputs(Roles):
    """The collection, and the runs of both systems over samples of training and held-out queries."""

    collection: Path
    sparse_train: Path | None = None
    dense_train: Path | None = None
    sparse_held_out: Path | None = None
    dense_held_out: Path | None = None


class TuneFusion(Stage[Spec, Inputs]):
    """The chosen weight, and the measure of each that was tried."""

    def needs(self, size: Size) -> Needs:
        depth = next(run["depth"] for run in size.given.values() if "depth" in run)
        lines = 2 * depth * math.fsum(size.asked(split, self.spec.queries) for split in self.spec.splits.values())
        return Needs(PLAIN + 130 * lines, core_seconds=lines / LINES)

    def make(self, job: Job) -> Facts:
        from encore.config.datasets import parse_measure
        from encore.data.collection import Collection, topics
        from encore.data.runs import read_run
        from encore.evaluation import fusion_weights

        spec, collection, given = self.spec, Collection(self.inputs.collection), self.inputs
        runs = {"train": (given.sparse_train, given.dense_train)}
        runs["held-out"] = (given.sparse_held_out, given.dense_held_out)
        measure, tried = parse_measure(spec.measure), {}
        for name, split in spec.splits.items():
            judged = collection.qrels(split)
            grades = {query: judged[query] for query in topics(collection, split, spec.queries, spec.sample)}
            sparse, dense = (read_run(folder) for folder in runs[name] if folder)
            tried[name] = fusion_weights.attempt(sparse, dense, grades, measure, spec.weights)
        fusion_weights.write_weights(job.output, spec.tuned_on, tried)
        for name, each in tried.items():
            print(f"tune_fusion: weight {each.best:g} is best on {each.queries} queries ({name})")
        return {"results": {name: each.summary() for name, each in tried.items()}}


STAGE = TuneFusion

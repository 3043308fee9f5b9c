"""Choose the weight of the sparse scores in a fusion, on queries that no table reports."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from encore.config.datasets import Measure, parse_measure
from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import LINES, PLAIN, Needs, Size
from encore.storage.files import open_text, write_json, write_text

if TYPE_CHECKING:
    from encore.data.rankings import Run
    from encore.evaluation.ranks import Grades


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
        from encore.data.collection import Collection, topics
        from encore.data.runs import read_run

        spec, collection, given = self.spec, Collection(self.inputs.collection), self.inputs
        runs = {"train": (given.sparse_train, given.dense_train)}
        runs["held-out"] = (given.sparse_held_out, given.dense_held_out)
        measure, tried = parse_measure(spec.measure), {}
        for name, split in spec.splits.items():
            judged = collection.qrels(split)
            grades = {query: judged[query] for query in topics(collection, split, spec.queries, spec.sample)}
            sparse, dense = (read_run(folder) for folder in runs[name] if folder)
            tried[name] = attempt(sparse, dense, grades, measure, spec.weights)
        write_weights(job.output, spec.tuned_on, tried)
        for name, each in tried.items():
            print(f"tune_fusion: weight {each.best:g} is best on {each.queries} queries ({name})")
        return {"results": {name: each.summary() for name, each in tried.items()}}


@dataclass(frozen=True)
class Tried:
    """The mean of a measure over the queries of a split, for every weight of a grid."""

    weights: list[float]
    means: list[float]
    queries: int

    @property
    def best(self) -> float:
        """The best weight; of equally good ones the smallest."""
        return self.weights[max(range(len(self.means)), key=lambda place: (self.means[place], -self.weights[place]))]

    def summary(self) -> dict[str, Any]:
        """For the manifest. A best weight at an end of the grid may have a better one beyond it."""
        at_edge = len(self.weights) > 1 and self.best in (min(self.weights), max(self.weights))
        return {"weight": self.best, "mean": round(max(self.means), 6), "queries": self.queries, "at_edge": at_edge}


def attempt(sparse: Run, dense: Run, grades: Grades, measure: Measure, weights: Sequence[float]) -> Tried:
    """The mean of a measure for every weight of the sparse scores (TCT-ColBERT, eq. 7), over the judged queries.

    A query that neither run answers counts 0.

    Args:
        weights: the grid, any order.
    """
    from encore.evaluation.measures import measure_values
    from encore.retrieval.fusion import align, fuse

    pairs = {query: align(sparse.get(query), dense.get(query)) for query in grades if query in sparse or query in dense}
    means = []
    for weight in weights:
        fused = {query: fuse(pair, weight, measure.cutoff) for query, pair in pairs.items()}
        values = measure_values([measure], grades, fused)[measure]
        means.append(round(math.fsum(values[query] for query in grades) / len(grades), 9))
    return Tried(list(weights), means, len(grades))


def write_weights(folder: Path, tuned_on: str, tried: Mapping[str, Tried]) -> None:
    """Write ``trials.tsv``, a line for each weight on each kind of queries, and ``weight.json``, the chosen one."""
    lines = ["tuned_on\tweight\tmean"]
    for name, each in tried.items():
        lines += [f"{name}\t{weight:g}\t{mean:.6f}" for weight, mean in zip(each.weights, each.means, strict=True)]
    write_text(folder / "trials.tsv", "\n".join(lines) + "\n")
    chosen = {name: each.summary() for name, each in tried.items()}
    write_json(folder / "weight.json", {"weight": tried[tuned_on].best, "tuned_on": tuned_on, "tried": chosen})


def read_weight(folder: Path) -> float:
    """The weight in a folder that ``write_weights`` wrote."""
    with open_text(folder / "weight.json") as file:
        return float(json.load(file)["weight"])


STAGE = TuneFusion

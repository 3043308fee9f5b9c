"""The plan of dense retrieval: a model's vectors of a collection in shards, and a run over them."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from encore.config.lineage import Lineage
from encore.plan.artifact import Artifact, Topics, names
from encore.plan.artifacts.collections import collection
from encore.plan.artifacts.tokens import tokens
from encore.plan.planner import Planner
from encore.storage.files import digest
from encore.storage.manifest import MANIFEST
from encore.storage.shards import NAME


def run(plan: Planner, lineage: Lineage, seed: int, dataset: str, topics: Topics) -> Artifact:
    """A lineage's run over the queries of a split."""
    model, vectors = plan.model(lineage, seed), shards(plan, lineage, seed, dataset)
    inputs = {
        "model": model,
        "tokens": tokens(plan, dataset, plan.resolve.backbone(lineage)),
        "collection": collection(plan, dataset),
    }
    named = {**names(inputs), "index": vectors[0].owner, "system": model.name}
    inputs |= {f"shard{number}": shard for number, shard in enumerate(vectors)}
    how = {"query_length": plan.resolve.lengths(lineage)[1], "numerics": plan.numerics()}
    spec = {"impl": plan.impl("search"), **topics._asdict(), **how, **named}
    if (products := plan.config.numerics.search) != "fp32":
        spec["products"] = products
    return plan.make("search", f"runs/{model.name}/{plan.resolve.dataset_name(dataset)}.{topics}", spec, inputs)


def shards(plan: Planner, lineage: Lineage, seed: int, dataset: str) -> list[Artifact]:
    """A dataset's vectors; the number of shards is execution, so it is in their names but in no digest.

    Vectors that are there in another number of shards than the configuration's are used as they are.
    """
    model = plan.model(lineage, seed)
    inputs = {"model": model, "tokens": tokens(plan, dataset, plan.resolve.backbone(lineage))}
    spec = {
        "impl": plan.impl("encode"),
        "length": plan.resolve.passage_length(lineage, dataset),
        "numerics": plan.numerics(),
        **names(inputs),
    }
    if (stored := plan.config.numerics.vectors) != "fp32":
        spec["vectors"] = stored
    folder = f"results/indexes/{model.name}/{plan.resolve.dataset_name(dataset)}-{digest(spec)}"
    count = _finished_count(Path(folder), plan.config.execution.shards_of(plan.resolve.dataset_name(dataset)))
    return [plan.keep(Artifact("encode", f"{folder}/{n:03d}-of-{count:03d}", spec, inputs)) for n in range(count)]


def _finished_count(folder: Path, wanted: int) -> int:
    """The number of shards in which a collection's vectors are finished; the wanted one if there are none."""
    try:
        names = [entry.name for entry in os.scandir(folder) if NAME.fullmatch(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return wanted
    finished = Counter(int(name.rpartition("-")[2]) for name in names if (folder / name / MANIFEST).is_file())
    counts = [count for count, number in finished.items() if count == number]
    return wanted if wanted in counts else min(counts, default=wanted)

"""Measure what one query takes in a system, and how large its index is."""

from pathlib import Path
from typing import Any

from encore.stages.base import Facts, Fields, Job, Roles, Stage
from encore.stages.needs import FP32, PLAIN, PROCESS, Needs, Size


class Spec(Fields):
    """The stage of the system's run, that run's spec, and how many queries are measured."""

    kind: str
    run: dict[str, Any]
    queries: int
    warm_up: int


class Inputs(Roles):
    """What the system reads, and the measurements of the systems that it combines."""

    collection: Path
    model: Path | None = None
    tokens: Path | None = None
    index: Path | None = None
    sparse: Path | None = None
    dense: Path | None = None
    first: Path | None = None
    shards: list[Path] = []
    parts: list[Path] = []


class MeasureLatency(Stage[Spec, Inputs]):
    """Milliseconds of each query."""

    devices = "one GPU"
    unnamed = frozenset(Inputs.model_fields) - {"parts"}  # the run's spec names them

    def needs(self, size: Size) -> Needs:
        """One query at a time reads all vectors, 9.7e9 bytes in a second; without a model Java searches."""
        vectors, queries = FP32 * size.passages * size.shape.dimension, self.spec.warm_up + self.spec.queries
        memory = (PROCESS if vectors else PLAIN + size.java) + vectors + 24 * size.passages
        return Needs(memory, core_seconds=queries * vectors / 4e9)

    def make(self, job: Job) -> Facts:
        from encore.retrieval.latency import RECORD, LatencyInputs, TimedRun, measure_latency

        spec, given = self.spec, self.inputs
        named = ("collection", "model", "tokens", "index", "sparse", "dense", "first")
        folders = {role: [folder] if (folder := getattr(given, role)) else [] for role in named}
        folders["indexes"] = given.shards
        run = TimedRun.model_validate(spec.run)
        asked = LatencyInputs(run, spec.queries, spec.warm_up, folders, given.parts, job.java_memory_mb)
        results = measure_latency(spec.kind, asked, job.output)
        print((job.output / RECORD).read_text())
        return {"results": results}


STAGE = MeasureLatency

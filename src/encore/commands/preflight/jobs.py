"""Which jobs a run still needs, by the manifests in ``results/``, how much each has to do, and what it requests."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, fsum
from pathlib import Path

from encore.commands.preflight import costs, downloads, shapes, trainings
from encore.commands.preflight.amounts import HEAP, Amounts, amounts, rule_of
from encore.commands.preflight.costs import Machine, find_machine
from encore.commands.preflight.downloads import Download, Fetches
from encore.commands.preflight.sizes import CollectionSizes, read_stated
from encore.datasets import kinds
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, upstream
from encore.plan.artifacts.collections import FETCHED
from encore.plan.plan import Plan
from encore.storage.manifest import has_no_vectors, is_unfinished

UNPACKED = {"fetch_source": 3.0, "fetch_ir_datasets": 1.0}  # bytes that are unpacked for a byte of a download
TRAINING = ("pretrain", "finetune")
SHARED = ("attend", "predict_queries")  # rules whose work `execution: processes` share, a GPU each
PREPROCESSING = ("tokens", "prepare")  # rules whose work `execution: preprocessing_cores` share
SPARE_MEMORY = 1.3
SPARE_TIME = 2.0  # in the first attempt; rules multiply it by the attempt
CUDA = 3e9  # bytes of a process's memory for CUDA's libraries and context; stated, since no GPU was measured
REFERENCE = "a100-80gb"  # time is estimated for this machine of a cluster, wherever a run is planned
LONGEST = 7 * 24 * 60  # minutes that a job requests in any attempt; more than most clusters give
LONGEST_RESUMED = 24 * 60  # the same of one that goes on in the next attempt, as a training does


@dataclass(frozen=True)
class Needed:
    """An artifact that a run needs: the rule that makes it, how much that has to do, and whether it is finished.

    ``gpu_memory``: bytes on each GPU, or in main memory without one. ``processes``: GPUs of a training.
    """

    artifact: Artifact
    rule: str
    finished: bool
    amounts: Amounts
    processes: int = 1
    gpu_memory: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def operations(self) -> float:
        """Floating-point operations that a GPU does: a model's, and those of exact search."""
        products = self.amounts.get("products", 0.0) if self.rule == "search" else 0.0
        return self.amounts.get("flops", 0.0) + products

    def precision(self, numerics: str) -> str:
        """What its operations are computed in: ``numerics``, the models' precision, or fp32 in search and attention."""
        return "fp32" if self.rule in ("attend", "search") else numerics


class Jobs:
    """The jobs of a plan, each counted once; ``machine``: whose GPU memory batches have to fit into."""

    def __init__(self, plan: Plan, sizes: CollectionSizes, machine: Machine, fetches: Fetches) -> None:
        self.plan, self.sizes, self.machine, self.fetches = plan, sizes, machine, fetches
        self._found: dict[str, Needed] = {}
        self._again: dict[str, bool] = {}

    def of(self, made: Artifact) -> Needed:
        """The job that makes an artifact."""
        if made.folder not in self._found:
            self._found[made.folder] = self._job(made)
        return self._found[made.folder]

    def behind(self, wanted: Iterable[Artifact]) -> list[Needed]:
        """The jobs of artifacts and of all that they are built from, each once."""
        return [self.of(each) for each in reversed(upstream(wanted))]

    def _job(self, made: Artifact) -> Needed:
        rule, execution = rule_of(made), self.plan.config.execution
        found, memory, notes = amounts(made, self.sizes), 0.0, list[str]()
        processes = execution.processes if rule in SHARED and "flops" in found else 1
        if rule in FETCHED:
            one = self.fetches.of(made)
            unpacked = one.missing if rule == "fetch_ir_datasets" else one.bytes
            found["unpacked"] = UNPACKED.get(rule, 0.0) * (unpacked or 0.0)
        elif rule in TRAINING:
            processes = execution.processes_of(shapes.step_of(made).batch)
            memory, notes = self._training(made, processes)
            found["cores"] = processes * max(1, execution.workers)
        elif "longest" in found:
            memory = trainings.reading_memory(shapes.shape_of(shapes.model_of(made) or made), found["longest"])
        elif "flops" in found:  # a T5: weights, and where it learns gradients and moments
            each = trainings.STATE if rule == "train_doc2query" else 1
            memory = trainings.FP32 * each * found["parameters"]
        elif rule in PREPROCESSING or (rule == "collection" and kinds.is_parallel(made.stage)):
            found["cores"] = execution.preprocessing_cores
        if "vectors" not in found:
            heap = 2.0**20 * execution.java_memory_mb
            found["java"] = min(heap, HEAP) if rule == "lucene_search" else heap
        if found.pop("uncounted", 0):
            objective = made.stage.partition(".")[2]
            notes.append(f"objective {objective} does not count its operations; only its encoder's are counted")
        if rule == "collection" and (size := self.sizes.behind(made)):
            notes += size.notes
        there = Path(made.manifest).is_file() and not has_no_vectors(Path(made.folder))
        finished = there and not self._is_made_again(made)
        return Needed(made, rule, finished, found, processes, memory, tuple(notes))

    def _is_made_again(self, made: Artifact) -> bool:
        """True if Snakemake builds a folder again: its job, or one that it depends on, left no manifest."""
        if made.folder not in self._again:
            unfinished = is_unfinished(Path(made.folder))
            self._again[made.folder] = unfinished or any(map(self._is_made_again, made.inputs.values()))
        return self._again[made.folder]

    def _training(self, made: Artifact, processes: int) -> tuple[float, list[str]]:
        """Bytes of a training's batch on each GPU, and a note if it goes through the model in parts."""
        step, numerics = shapes.step_of(made), made.spec["numerics"]
        share = ceil(step.batch / processes)
        most = 1e9 * self.machine.gpu_memory_gb if self.machine.gpu_memory_gb else float("inf")
        first = min(numerics.get("micro_batch") or share, share)
        at_once, memory = trainings.fit(step, shapes.shape_of(made), first, numerics.get("precision", "fp32"), most)
        return memory, [f"{at_once} of {share} examples at once"] if at_once < share else []


def fetched(plan: Plan, jobs: Iterable[Needed], sizes: CollectionSizes, fetches: Fetches) -> list[Download]:
    """What the jobs need from the network, or from a folder that the user fills."""
    found: list[Download] = []
    for job in jobs:
        if job.artifact.source and not Path(job.artifact.source).exists():
            stated = sizes.stated.get(sizes.dataset(job.artifact)) if job.rule == "collection" else None
            found.append(downloads.by_hand(plan, job.artifact, stated.bytes if stated else None))
        if job.rule in FETCHED:
            found.append(fetches.of(job.artifact))
    return list({each.name: each for each in found}.values())


class Requests:
    """What the jobs of a plan request from a cluster: estimates, and some to spare. A profile may say otherwise."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._machine = plan, find_machine(REFERENCE)

    def memory_mb(self, made: Artifact, least: int) -> int:
        """MB of memory for the job that makes an artifact, in steps of 100 above ``least``."""
        job = self._job(made)
        estimated = 0.0
        if job:
            cuda = CUDA if "flops" in job.amounts else 0.0  # of a model, on a GPU if the machine has one
            estimated = SPARE_MEMORY * job.processes * (costs.memory(made.stage, job.amounts) + cuda) / 1e6
        return least if estimated <= least else 100 * ceil(estimated / 100)

    def minutes(self, made: Artifact, least: int) -> int:
        """Minutes for the job that makes an artifact, in whole hours above ``least``; it may have to encode again."""
        removed = [shard for shard in made.inputs.values() if has_no_vectors(Path(shard.folder))]
        jobs = filter(None, map(self._job, [made, *removed]))
        estimated = SPARE_TIME * fsum(map(self._seconds, jobs)) / 60
        return least if estimated <= least else 60 * ceil(estimated / 60)

    def _seconds(self, job: Needed) -> float:
        rate = self._machine.flops_a_second(job.precision(self._plan.config.numerics.precision))
        on_gpu = job.operations / rate / job.processes if rate else 0.0
        return on_gpu + costs.core_seconds(job.artifact.stage, job.amounts)

    def _job(self, made: Artifact) -> Needed | None:
        try:
            return self._jobs.of(made)
        except EncoreError:  # its size is unknown, so it requests the least
            return None

    @cached_property
    def _jobs(self) -> Jobs:
        return Jobs(self._plan, CollectionSizes(self._plan, read_stated()), self._machine, Fetches(self._plan, {}))

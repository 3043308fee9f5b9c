"""Which jobs a run still needs, by the manifests that are there, and how much each has to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from encore.commands.preflight import downloads, gpu, shapes
from encore.commands.preflight.amounts import Amounts, amounts
from encore.commands.preflight.downloads import Download
from encore.commands.preflight.fetches import Fetches
from encore.commands.preflight.machine import Machine
from encore.commands.preflight.sizes import CollectionSizes
from encore.commands.preflight.threads import rule_threads
from encore.datasets import kinds
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.storage.shards import has_no_vectors

FETCHING = ("fetch_source", "fetch_ir_datasets", "fetch_checkpoint")
UNPACKED = {"fetch_source": 3.0, "fetch_ir_datasets": 1.0}  # bytes that are unpacked for a byte of a download
TRAINING = ("pretrain", "finetune")
NEVER_FORKED = ("lucene_index", "lucene_search", "measure_latency")  # workflow/forkserver/client.py says why


@dataclass(frozen=True)
class Needed:
    """An artifact that a run needs: the rule that makes it, how much that has to do, and whether it is there.

    ``gpu_memory``: bytes on each GPU, or in main memory where there is none. ``processes``: GPUs of a training;
    ``feeding``: the processes that make its batches for them.
    """

    artifact: Artifact
    rule: str
    finished: bool
    amounts: Amounts
    threads: int = 1
    processes: int = 1
    feeding: int = 1
    gpu_memory: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def computes(self) -> bool:
        """Whether it runs a model, on a GPU where there is one."""
        return "flops" in self.amounts

    def precision(self, numerics: str) -> str:
        """What its operations are computed in: ``numerics``, the models' precision, or that of search or attention.

        A machine's rate of fp16 is that of bf16.
        """
        if self.rule == "search":
            products = str(self.artifact.spec.get("products", "fp32"))
            return "bf16" if products == "fp16" else products
        return "fp32" if self.rule == "attend" else numerics


class Jobs:
    """The jobs of a plan, each counted once.

    Args:
        machine: whose GPU memory batches have to fit into.
        forks: whether jobs of one thread are forks of a process that has imported what they need.
    """

    def __init__(
        self, plan: Plan, sizes: CollectionSizes, machine: Machine, fetches: Fetches, forks: bool = False
    ) -> None:
        self.plan, self.sizes, self.machine, self.fetches, self.forks = plan, sizes, machine, fetches, forks
        self._threads = rule_threads(plan.config)
        self._found: dict[str, Needed] = {}

    def of(self, made: Artifact) -> Needed:
        """The job that makes an artifact."""
        if made.folder not in self._found:
            self._found[made.folder] = self._job(made)
        return self._found[made.folder]

    def behind(self, wanted: Iterable[Artifact]) -> list[Needed]:
        """The jobs of artifacts and of all that they are made from, each once, after what they are made from."""
        return [self.of(each) for each in upstream_jobs(wanted)]

    def _job(self, made: Artifact) -> Needed:
        rule = rule_of(made)
        found, memory = amounts(made, self.sizes), 0.0
        notes: list[str] = []
        if rule in FETCHING:
            one = self.fetches.of(made)
            unpacked = one.missing if rule == "fetch_ir_datasets" else one.bytes
            found |= {"bytes": one.missing or 0.0, "unpacked": UNPACKED.get(rule, 0.0) * (unpacked or 0.0)}
        computes = "flops" in found
        execution = self.plan.config.execution
        processes = execution.processes if rule == "attend" else 1
        if rule in TRAINING:
            processes = execution.processes_of(shapes.step_of(made).batch)
            memory, notes = self._training(made, processes)
        elif computes and "longest" in found:
            memory = gpu.reading(shapes.shape_of(shapes.model_of(made) or made), found["longest"])
        elif computes:  # a T5: weights, and where it learns gradients and moments
            memory = found["parameters"] * (gpu.FP32 * gpu.STATE if rule == "train_doc2query" else gpu.FP32)
        if found.pop("uncounted", 0):
            notes.append(
                f"objective {made.stage.partition('.')[2]} does not count its operations; its encoder's are taken"
            )
        if rule == "collection" and (size := self.sizes.behind(made)):
            notes += size.notes
        threads = self._threads_of(made, rule, processes)
        feeding = processes * max(1, execution.workers) if rule in TRAINING else 1
        if self.forks and threads == 1 and rule not in NEVER_FORKED:
            found["imports"] = 0.0
        finished = Path(made.manifest).is_file() and not has_no_vectors(Path(made.folder))
        return Needed(made, rule, finished, found, threads, processes, feeding, memory, tuple(notes))

    def _threads_of(self, made: Artifact, rule: str, processes: int) -> int:
        if rule in TRAINING:  # as threads_of_training in workflow/rules/common.smk
            return processes * (1 if self.machine.peak else self.plan.config.numerics.threads)
        if rule == "collection" and not kinds.is_parallel(made.stage):
            return 1
        return self._threads.get(rule, 1)

    def _training(self, made: Artifact, processes: int) -> tuple[float, list[str]]:
        """Bytes of a training's batch on each GPU, and a note where it goes through the model in parts."""
        step, numerics = shapes.step_of(made), made.spec["numerics"]
        share = ceil(step.batch / processes)
        most = 1e9 * self.machine.gpu_memory_gb if self.machine.gpu_memory_gb else float("inf")
        first = min(numerics.get("micro_batch") or share, share)
        at_once, memory = gpu.fit(step, shapes.shape_of(made), first, numerics.get("precision", "fp32"), most)
        return memory, [f"{at_once} of {share} examples at once"] if at_once < share else []


def rule_of(artifact: Artifact) -> str:
    """The rule that makes an artifact: its stage, without the kind."""
    return artifact.stage.partition(".")[0]


def upstream_jobs(artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Artifacts with all that they are made from, each once, what is made from others after these."""
    found: dict[str, Artifact] = {}
    waiting = [(artifact, False) for artifact in reversed(list(artifacts))]
    while waiting:
        artifact, seen = waiting.pop()
        if artifact.folder in found:
            continue
        if seen:
            found[artifact.folder] = artifact
            continue
        waiting.append((artifact, True))
        waiting += [(part, False) for part in artifact.inputs.values() if part.folder not in found]
    return list(found.values())


def fetched(plan: Plan, jobs: Iterable[Needed], sizes: CollectionSizes, fetches: Fetches) -> list[Download]:
    """What the artifacts need from the network, or from the user's own hand."""
    found: list[Download] = []
    for job in jobs:
        if job.artifact.source and not Path(job.artifact.source).exists():
            stated = sizes.stated.get(sizes.dataset(job.artifact)) if job.rule == "collection" else None
            found.append(downloads.by_hand(plan, job.artifact, stated.bytes if stated else None))
        if job.rule in FETCHING:
            found.append(fetches.of(job.artifact))
    return list({each.name: each for each in found}.values())

"""Which jobs a run still needs, by the manifests in ``results/``, what each takes, and what it requests."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, fsum, inf
from pathlib import Path
from typing import Any

from encore import stages
from encore.commands.preflight import downloads, shapes
from encore.commands.preflight.downloads import Download, Fetches
from encore.commands.preflight.machines import Machine, find_machine
from encore.commands.preflight.sizes import CollectionSizes, read_stated
from encore.config.entries import LARGEST_BATCH
from encore.errors import EncoreError
from encore.plan.artifact import Artifact, upstream
from encore.plan.plan import Plan
from encore.stages.base import Stage
from encore.stages.needs import NO_MODEL, SPARE_MEMORY, CollectionSize, Needs, Size
from encore.storage.manifest import has_no_vectors, is_unfinished

SPARE_TIME = 2.0  # in the first attempt; rules multiply it by the attempt
CUDA = 3e9  # bytes of a process's memory for CUDA's libraries and context; stated, since no GPU was measured
REFERENCE = "a100-80gb"  # time is estimated for this machine of a cluster, wherever a run is planned
LONGEST = 7 * 24 * 60  # minutes that a job requests in any attempt; more than most clusters give
LONGEST_RESUMED = 24 * 60  # the same of one that goes on in the next attempt, as a training does


@dataclass(frozen=True)
class Needed:
    """An artifact that a run needs: whether it is finished, and what the job that makes it takes.

    ``processes``: GPUs that share its work.
    """

    artifact: Artifact
    finished: bool
    needs: Needs = field(default_factory=Needs)
    processes: int = 1

    @property
    def rule(self) -> str:
        """The rule that makes it: its stage, without the kind."""
        return self.artifact.stage.partition(".")[0]

    def seconds(self, rate: float | None) -> float:
        """How long it takes where ``rate`` operations of models are done in a second; without a GPU None of them."""
        needs = self.needs
        return (needs.operations / rate / self.processes if rate else 0.0) + needs.core_seconds / needs.cores


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
        kind = stages.load(made.stage)
        stage = kind(
            kind.spec_of(made.spec, made.inputs, made.folder), None
        )  # what it takes is the same wherever its inputs are
        there = Path(made.manifest).is_file() and not has_no_vectors(Path(made.folder))
        size = self._size(made, stage)
        return Needed(made, there and not self._is_made_again(made), stage.needs(size), size.processes)

    def _size(self, made: Artifact, stage: Stage[Any, Any]) -> Size:
        execution, model = self.plan.config.execution, shapes.model_of(made)
        batch = made.spec.get("step", {}).get("batch", LARGEST_BATCH)
        one = self.fetches.of(made) if stage.does == "fetches" else None
        return Size(
            collection=self.sizes.behind(made) or CollectionSize(),
            shape=shapes.shape_of(model) if model else NO_MODEL,
            run=made.inputs.get("run", made).spec,
            given={role: each.spec for role, each in made.inputs.items()},
            folder=made.name,
            share=self.plan.catalogue.share_with_triples(made),
            download=(one.bytes or 0.0) if one else 0.0,
            here=one.here if one else 0.0,
            processes=execution.processes_of(batch) if stage.is_shared else 1,
            workers=execution.workers,
            cores=execution.preprocessing_cores,
            java=2.0**20 * execution.java_memory_mb,
            gpu_memory=1e9 * (self.machine.gpu_memory_gb or inf),
        )

    def _is_made_again(self, made: Artifact) -> bool:
        """True if Snakemake builds a folder again: its job, or one that it depends on, left no manifest."""
        if made.folder not in self._again:
            unfinished = is_unfinished(Path(made.folder))
            self._again[made.folder] = unfinished or any(map(self._is_made_again, made.inputs.values()))
        return self._again[made.folder]


def fetched(plan: Plan, jobs: Iterable[Needed], sizes: CollectionSizes, fetches: Fetches) -> list[Download]:
    """What the jobs need from the network, or from a folder that the user fills."""
    found: list[Download] = []
    for job in jobs:
        if job.artifact.source and not Path(job.artifact.source).exists():
            stated = sizes.stated.get(sizes.dataset(job.artifact)) if job.rule == "collection" else None
            found.append(downloads.by_hand(plan, job.artifact, stated.bytes if stated else None))
        if job.artifact.stage in stages.that("fetches"):
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
            cuda = CUDA if job.needs.operations else 0.0  # of a model, on a GPU if the machine has one
            estimated = SPARE_MEMORY * job.processes * (job.needs.memory + cuda) / 1e6
        return least if estimated <= least else 100 * ceil(estimated / 100)

    def minutes(self, made: Artifact, least: int) -> int:
        """Minutes for the job that makes an artifact, in whole hours above ``least``; it may have to encode again."""
        removed = [shard for shard in made.inputs.values() if has_no_vectors(Path(shard.folder))]
        jobs = filter(None, map(self._job, [made, *removed]))
        estimated = SPARE_TIME * fsum(map(self._seconds, jobs)) / 60
        return least if estimated <= least else 60 * ceil(estimated / 60)

    def _seconds(self, job: Needed) -> float:
        return job.seconds(self._machine.flops_a_second(job.needs.precision or self._plan.config.numerics.precision))

    def _job(self, made: Artifact) -> Needed | None:
        try:
            return self._jobs.of(made)
        except EncoreError:  # its size is unknown, so it requests the least
            return None

    @cached_property
    def _jobs(self) -> Jobs:
        return Jobs(self._plan, CollectionSizes(self._plan, read_stated()), self._machine, Fetches(self._plan, {}))

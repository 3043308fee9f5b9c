"""Memory and time that a job requests from a cluster: what is estimated for its sizes, and some to spare."""

from __future__ import annotations

from functools import cached_property
from math import ceil
from pathlib import Path

from encore.commands.preflight import costs
from encore.commands.preflight.downloads import Fetches
from encore.commands.preflight.jobs import Jobs, Needed
from encore.commands.preflight.machine import find_machine
from encore.commands.preflight.sizes import CollectionSizes, read_stated
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.storage.manifest import has_no_vectors

SPARE_MEMORY = 1.3
SPARE_TIME = 2.0  # in the first attempt; rules multiply it by the attempt
CUDA = 3e9  # bytes of a process's memory for CUDA's libraries and context; stated, since no GPU was measured
REFERENCE = "a100-80gb"  # time is estimated for this machine of a cluster, wherever a run is planned
LONGEST = 7 * 24 * 60  # minutes that a job requests in any attempt; more than most clusters give
LONGEST_TRAINING = 24 * 60  # the same of a training, which resumes from its checkpoint in the next attempt


class Requests:
    """What the jobs of a plan request; a profile may say otherwise."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._machine = plan, find_machine(REFERENCE)

    def memory_mb(self, made: Artifact, least: int) -> int:
        """MB of memory for the job that makes an artifact, in whole GB above ``least``."""
        job = self._job(made)
        process = costs.memory(made.stage, job.amounts) + (CUDA if job.computes else 0.0) if job else 0.0
        estimated = SPARE_MEMORY * job.processes * process / 1e6 if job else 0.0
        return least if estimated <= least else 1000 * ceil(estimated / 1000)

    def minutes(self, made: Artifact, least: int) -> int:
        """Minutes for the job that makes an artifact, in whole hours above ``least``; it may have to encode again."""
        removed = [shard for shard in made.inputs.values() if has_no_vectors(Path(shard.folder))]
        jobs = filter(None, map(self._job, [made, *removed]))
        estimated = SPARE_TIME * sum(map(self._seconds, jobs)) / 60
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

"""Memory and time that a job asks a cluster for: what is estimated for collections of its size, and some to spare."""

from __future__ import annotations

from functools import cached_property
from math import ceil
from pathlib import Path

from encore.commands.preflight.fetches import Fetches
from encore.commands.preflight.jobs import Jobs, Needed
from encore.commands.preflight.machine import Machine, find_machine
from encore.commands.preflight.rates import SHIPPED, Rates, read_rates
from encore.commands.preflight.sizes import CollectionSizes, read_stated
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan
from encore.storage.shards import has_no_vectors

SPARE_MEMORY = 1.3
SPARE_TIME = 3.0
CUDA = 3e9  # bytes of a process's memory for CUDA's libraries and context; stated, since no GPU was measured
REFERENCE = "a100-80gb"  # time is estimated for a machine of a cluster, wherever this is planned
LONGEST = 7 * 24 * 60  # minutes that a job asks for, in whatever attempt; more than most clusters give
LONGEST_TRAINING = 24 * 60  # the same of a training, which goes on in the next attempt
CONFIG = Path("config")


class Requests:
    """What jobs of a plan ask for; whoever knows better says so in a profile."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def memory_mb(self, made: Artifact, least: int) -> int:
        """MB of memory for the job that makes an artifact, in whole GB above ``least``."""
        job = self._job(made)
        estimated = 0.0
        if job is not None:
            process = self._rates.of(made.stage).ram.of(job.amounts) + (CUDA if job.computes else 0.0)
            estimated = SPARE_MEMORY * job.processes * process / 1e6
        return least if estimated <= least else 1000 * ceil(estimated / 1000)

    def minutes(self, made: Artifact, least: int) -> int:
        """Minutes for the job that makes an artifact, in whole hours above ``least``; it may have to encode again."""
        job = self._job(made)
        if job is None:
            return least
        removed = [shard for shard in made.inputs.values() if has_no_vectors(Path(shard.folder))]
        jobs = [job, *filter(None, map(self._job, removed))]
        estimated = SPARE_TIME * sum(map(self._seconds, jobs)) / 60
        return least if estimated <= least else 60 * ceil(estimated / 60)

    def _seconds(self, job: Needed) -> float:
        precision = job.precision(self._plan.config.numerics.precision)
        rate = self._machine.flops_a_second(precision) if job.computes else None
        return self._rates.seconds(job.artifact.stage, job.amounts, job.threads, rate, job.processes, job.feeding)

    def _job(self, made: Artifact) -> Needed | None:
        try:
            return self._jobs.of(made)
        except EncoreError:  # nobody knows: the least it is
            return None

    @cached_property
    def _jobs(self) -> Jobs:
        sizes = CollectionSizes(self._plan, read_stated(CONFIG / "sizes.yaml"))
        return Jobs(self._plan, sizes, self._machine, Fetches(self._plan, {}))

    @cached_property
    def _machine(self) -> Machine:
        return find_machine(REFERENCE, CONFIG / "machines.yaml")

    @cached_property
    def _rates(self) -> Rates:
        return read_rates(SHIPPED)

"""Memory and time that a job asks a cluster for: what is estimated for collections of its size, and some to spare."""

from __future__ import annotations

from functools import cached_property
from math import ceil
from pathlib import Path

from encore.commands.preflight import machine
from encore.commands.preflight.cost import Cost
from encore.commands.preflight.fetches import Fetches
from encore.commands.preflight.jobs import cost_of
from encore.commands.preflight.machine import Machine
from encore.commands.preflight.sizes import CollectionSizes, read_stated
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.plan import Plan

SPARE_MEMORY = 1.3
SPARE_TIME = 3.0
REFERENCE = "a100-80gb"  # time is estimated for a machine of a cluster, wherever this is planned
LONGEST = 7 * 24 * 60  # minutes; more than any cluster gives
CONFIG = Path("config")


class Requests:
    """What jobs of a plan ask for; whoever knows better says so in a profile."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def memory_mb(self, made: Artifact, least: int) -> int:
        """MB of memory for the job that makes an artifact, in whole GB above ``least``."""
        estimated = SPARE_MEMORY * self._cost(made).memory / 1e6
        return least if estimated <= least else 1000 * ceil(estimated / 1000)

    def minutes(self, made: Artifact, least: int) -> int:
        """Minutes for the job that makes an artifact, in whole hours above ``least``."""
        precision = self._plan.config.numerics.precision
        estimated = SPARE_TIME * self._machine.seconds(self._cost(made), precision) / 60
        return least if estimated <= least else min(LONGEST, 60 * ceil(estimated / 60))

    def _cost(self, made: Artifact) -> Cost:
        try:
            return cost_of(self._plan, self._sizes, self._machine, Fetches(self._plan, {}), made)
        except EncoreError:  # nobody knows: the least it is
            return Cost()

    @cached_property
    def _sizes(self) -> CollectionSizes:
        return CollectionSizes(self._plan, read_stated(CONFIG / "sizes.yaml"))

    @cached_property
    def _machine(self) -> Machine:
        return machine.find_machine(REFERENCE, CONFIG / "machines.yaml")

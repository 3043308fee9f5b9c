"""How long jobs take side by side: list scheduling on GPUs and cores, longest way to the end first.

The result is a schedule that could be carried out, so it is no promise and never below the critical path.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter


@dataclass(frozen=True)
class Job:
    """A job: its name, what it waits for, how long it takes, and what it occupies meanwhile."""

    name: str
    seconds: float
    after: tuple[str, ...] = ()
    gpus: int = 0
    cores: int = 1


@dataclass(frozen=True)
class Schedule:
    """When the last job ends, when each begins, and the longest chain of jobs that wait for each other."""

    wall: float
    begins: dict[str, float]
    critical: tuple[str, ...]
    critical_seconds: float


def schedule(jobs: Sequence[Job], gpus: int, cores: int) -> Schedule:
    """Run jobs as soon as what they wait for is done and their GPUs and cores are free.

    A job that wants more than there is takes all there is. Names that no job has are done already.
    """
    by = {job.name: job for job in jobs}
    waits = {job.name: {name for name in job.after if name in by} for job in jobs}
    followers: dict[str, list[str]] = {name: [] for name in by}
    remaining: dict[str, float] = {}  # seconds from a job's beginning to the end of the longest chain that it begins
    for name in (order := list(TopologicalSorter(waits).static_order())):
        for before in waits[name]:
            followers[before].append(name)
    for name in reversed(order):
        remaining[name] = by[name].seconds + max((remaining[other] for other in followers[name]), default=0.0)
    wants = {job.name: (min(job.gpus, gpus), max(1, min(job.cores, cores))) for job in jobs}

    def urgency(name: str) -> tuple[float, str]:
        return -remaining[name], name

    ready = sorted((name for name in by if not waits[name]), key=urgency)
    running: list[tuple[float, str]] = []
    now, begins = 0.0, dict[str, float]()
    while ready or running:
        for name in list(ready):
            if wants[name][0] <= gpus and wants[name][1] <= cores:
                gpus, cores = gpus - wants[name][0], cores - wants[name][1]
                begins[name] = now
                ready.remove(name)
                heapq.heappush(running, (now + by[name].seconds, name))
            elif not cores:
                break
        now, done = heapq.heappop(running)
        gpus, cores = gpus + wants[done][0], cores + wants[done][1]
        for name in followers[done]:
            waits[name].discard(done)
            if not waits[name]:
                insort(ready, name, key=urgency)
    chain: list[str] = []
    choice = [name for name, job in by.items() if not any(before in by for before in job.after)]
    while choice:
        chain.append(min(choice, key=urgency))
        choice = followers[chain[-1]]
    return Schedule(now, begins, tuple(chain), sum(by[name].seconds for name in chain))

"""How long jobs take side by side: list scheduling on GPUs and cores, longest way to the end first.

The result is a schedule that could be carried out, so it is no promise and never below the critical path.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


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
    behind = _behind(by)
    waits = {job.name: sum(name in by for name in set(job.after)) for job in jobs}
    followers = _followers(by)
    ready = [(-behind[name], name) for name, count in waits.items() if not count]
    heapq.heapify(ready)
    running: list[tuple[float, str]] = []
    free, now, begins = [gpus, cores], 0.0, dict[str, float]()
    while ready or running:
        later = []
        while ready:
            entry = heapq.heappop(ready)
            wants = _wants(by[entry[1]], gpus, cores)
            if all(have >= want for have, want in zip(free, wants, strict=True)):
                free = [have - want for have, want in zip(free, wants, strict=True)]
                begins[entry[1]] = now
                heapq.heappush(running, (now + by[entry[1]].seconds, entry[1]))
            else:
                later.append(entry)
            if not any(free):
                break
        for entry in later:
            heapq.heappush(ready, entry)
        now, done = heapq.heappop(running)
        free = [have + want for have, want in zip(free, _wants(by[done], gpus, cores), strict=True)]
        for name in followers[done]:
            waits[name] -= 1
            if not waits[name]:
                heapq.heappush(ready, (-behind[name], name))
    chain = _chain(by, behind, followers)
    return Schedule(now, begins, chain, sum(by[name].seconds for name in chain))


def _wants(job: Job, gpus: int, cores: int) -> tuple[int, int]:
    return min(job.gpus, gpus), max(1, min(job.cores, cores))


def _followers(by: dict[str, Job]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in by}
    for job in by.values():
        for name in dict.fromkeys(job.after):
            if name in found:
                found[name].append(job.name)
    return found


def _behind(by: dict[str, Job]) -> dict[str, float]:
    """Seconds from a job's beginning to the end of the longest chain that it begins."""
    followers, found = _followers(by), dict[str, float]()
    for name in _last_first(by, followers):
        found[name] = by[name].seconds + max((found[other] for other in followers[name]), default=0.0)
    return found


def _last_first(by: dict[str, Job], followers: dict[str, list[str]]) -> Iterable[str]:
    """Every job after all that wait for it."""
    left = {name: len(others) for name, others in followers.items()}
    done = [name for name, count in left.items() if not count]
    for name in done:
        for other in dict.fromkeys(by[name].after):
            if other in left:
                left[other] -= 1
                if not left[other]:
                    done.append(other)
    return done


def _chain(by: dict[str, Job], behind: dict[str, float], followers: dict[str, list[str]]) -> tuple[str, ...]:
    """The longest chain: from its first job, always the follower with the longest way behind it."""
    found: list[str] = []
    choice: Iterable[str] = [job.name for job in by.values() if not any(name in by for name in job.after)]
    while choice := list(choice):
        found.append(max(choice, key=lambda name: (behind[name], name)))
        choice = followers[found[-1]]
    return tuple(found)

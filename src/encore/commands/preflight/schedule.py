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
    remaining, followers = _remaining(by), _followers(by)
    waits = {job.name: sum(name in by for name in set(job.after)) for job in jobs}
    queues: Queues = {}
    for name in (name for name, count in waits.items() if not count):
        _queue(queues, by[name], remaining, (gpus, cores))
    running: list[tuple[float, str]] = []
    free, now, begins = (gpus, cores), 0.0, dict[str, float]()
    while queues or running:
        while (wants := _next(queues, free)) is not None:
            _, name = heapq.heappop(queues[wants])
            free = (free[0] - wants[0], free[1] - wants[1])
            begins[name] = now
            heapq.heappush(running, (now + by[name].seconds, name))
            if not queues[wants]:
                del queues[wants]
        now, done = heapq.heappop(running)
        wanted = _wants(by[done], (gpus, cores))
        free = (free[0] + wanted[0], free[1] + wanted[1])
        for name in followers[done]:
            waits[name] -= 1
            if not waits[name]:
                _queue(queues, by[name], remaining, (gpus, cores))
    chain = _chain(by, remaining, followers)
    return Schedule(now, begins, chain, sum(by[name].seconds for name in chain))


Room = tuple[int, int]  # GPUs and cores
Queues = dict[Room, list[tuple[float, str]]]  # jobs that could begin, by what they want, the most urgent first


def _queue(queues: Queues, job: Job, remaining: dict[str, float], whole: Room) -> None:
    heapq.heappush(queues.setdefault(_wants(job, whole), []), (-remaining[job.name], job.name))


def _next(queues: Queues, free: Room) -> Room | None:
    """What the most urgent job wants of those for which there is room."""
    fitting = [wants for wants in queues if wants[0] <= free[0] and wants[1] <= free[1]]
    return min(fitting, key=lambda wants: queues[wants][0]) if fitting else None


def _wants(job: Job, whole: Room) -> Room:
    return min(job.gpus, whole[0]), max(1, min(job.cores, whole[1]))


def _followers(by: dict[str, Job]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {name: [] for name in by}
    for job in by.values():
        for name in dict.fromkeys(job.after):
            if name in found:
                found[name].append(job.name)
    return found


def _remaining(by: dict[str, Job]) -> dict[str, float]:
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


def _chain(by: dict[str, Job], remaining: dict[str, float], followers: dict[str, list[str]]) -> tuple[str, ...]:
    """The longest chain: from its first job, always the follower with the longest way behind it."""
    found: list[str] = []
    choice: Iterable[str] = [job.name for job in by.values() if not any(name in by for name in job.after)]
    while choice := list(choice):
        found.append(max(choice, key=lambda name: (remaining[name], name)))
        choice = followers[found[-1]]
    return tuple(found)

"""List scheduling on GPUs and cores, against all orders of small sets of jobs."""

from __future__ import annotations

import itertools
import random

import pytest

from encore.commands.preflight.schedule import Job, schedule


def _random_jobs(seed: int, count: int = 6) -> list[Job]:
    rng = random.Random(seed)
    jobs: list[Job] = []
    for number in range(count):
        after = tuple(job.name for job in jobs if rng.random() < 0.3)
        jobs.append(Job(f"job{number}", rng.randint(1, 9), after, gpus=rng.randint(0, 1)))
    return jobs


def _best(jobs: list[Job], gpus: int, cores: int) -> float:
    """The shortest schedule: every order, each job as early as the order, its parents and the room allow."""
    return min(_in_order(order, gpus, cores) for order in itertools.permutations(jobs))


def _in_order(order: tuple[Job, ...], gpus: int, cores: int) -> float:
    done: dict[str, tuple[float, float, Job]] = {}
    names = {job.name for job in order}
    for job in order:
        if any(name in names and name not in done for name in job.after):
            return float("inf")
        times = sorted({0.0, *(end for _, end, _ in done.values())})
        first = max((done[name][1] for name in job.after if name in done), default=0.0)
        for begin in (time for time in times if time >= first):
            if _room(done, job, begin, gpus, cores):
                done[job.name] = (begin, begin + job.seconds, job)
                break
    return max(end for _, end, _ in done.values())


def _room(done: dict[str, tuple[float, float, Job]], job: Job, begin: float, gpus: int, cores: int) -> bool:
    moments = [begin, *(start for start, _, _ in done.values() if begin < start < begin + job.seconds)]
    for moment in moments:
        others = [other for start, end, other in done.values() if start <= moment < end]
        if (
            sum(other.gpus for other in others) + job.gpus > gpus
            or sum(other.cores for other in others) + job.cores > cores
        ):
            return False
    return True


@pytest.mark.parametrize("seed", range(12))
def test_it_is_never_better_than_the_best_and_within_the_bound_of_list_scheduling(seed: int) -> None:
    jobs = _random_jobs(seed)
    best = _best(jobs, gpus=1, cores=2)
    found = schedule(jobs, gpus=1, cores=2)
    assert best <= found.wall <= 3 * best  # two resources: 1 + 2 times at most (Garey and Graham 1975)
    assert found.wall >= found.critical_seconds


@pytest.mark.parametrize("seed", range(12))
def test_what_it_gives_could_be_carried_out(seed: int) -> None:
    jobs = _random_jobs(seed, 9)
    found = schedule(jobs, gpus=2, cores=3)
    by = {job.name: job for job in jobs}
    ends = {name: begin + by[name].seconds for name, begin in found.begins.items()}
    assert set(found.begins) == set(by)
    for job in jobs:
        assert all(ends[name] <= found.begins[job.name] for name in job.after)
        others = [by[name] for name, begin in found.begins.items() if begin <= found.begins[job.name] < ends[name]]
        assert sum(other.gpus for other in others) <= 2
        assert sum(other.cores for other in others) <= 3
    assert max(ends.values()) == found.wall


@pytest.mark.parametrize("seed", range(12))
def test_the_critical_path_is_the_longest_chain(seed: int) -> None:
    jobs = _random_jobs(seed, 8)
    by = {job.name: job for job in jobs}

    def longest(job: Job) -> float:
        return job.seconds + max((longest(by[name]) for name in job.after), default=0.0)

    found = schedule(jobs, gpus=1, cores=1)
    assert found.critical_seconds == max(longest(job) for job in jobs)
    for before, after in itertools.pairwise(found.critical):
        assert before in by[after].after


def test_without_limits_the_longest_chain_is_all() -> None:
    jobs = _random_jobs(3, 8)
    found = schedule(jobs, gpus=99, cores=99)
    assert found.wall == found.critical_seconds


def test_one_core_does_one_thing_after_another() -> None:
    jobs = _random_jobs(5, 8)
    assert schedule(jobs, gpus=1, cores=1).wall == sum(job.seconds for job in jobs)


def test_a_job_that_wants_more_than_there_is_takes_all() -> None:
    jobs = [Job("wide", 5, gpus=4, cores=8), Job("other", 3, gpus=1)]
    assert schedule(jobs, gpus=2, cores=2).wall == 8


def test_what_is_done_already_is_not_waited_for() -> None:
    assert schedule([Job("left", 4, after=("finished",))], gpus=0, cores=1).wall == 4


def test_nothing_to_do_takes_no_time() -> None:
    found = schedule([], gpus=1, cores=1)
    assert (found.wall, found.critical) == (0.0, ())

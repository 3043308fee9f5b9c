"""What jobs request: cores, memory and time, by the size of what they are made from. A profile may say otherwise."""

from encore.commands.preflight.jobs import LONGEST, LONGEST_RESUMED, Requests
from encore.datasets import kinds

REQUESTS = Requests(PLAN) if PLAN else None  # a job of a cluster requests nothing


def processes_of(folder):
    """The processes of a training, and its GPUs: fewer for a small batch."""
    return lambda wildcards: EXECUTION.processes_of(artifact_in(folder, wildcards).spec["step"]["batch"])


def threads_of(rule):
    """The threads of one process that runs a model; one where the profile gives the rule GPUs, which compute."""
    return 1 if has_gpus(rule) else NUMERICS.threads


def threads_of_training(rule, folder):
    """The threads of all processes of a training."""
    processes, of_each = processes_of(folder), threads_of(rule)
    return lambda wildcards: of_each * processes(wildcards)


def cores_of_training(rule, folder):
    """The cores that a training requests: those of its threads, and one for each process that makes batches."""
    processes, workers = processes_of(folder), max(EXECUTION.workers, int(has_gpus(rule)))
    return lambda wildcards, threads: threads + workers * processes(wildcards)


def preprocessing_cores(collection):
    """Cores of the job that makes a collection: more than one for kinds whose work processes can share."""
    return EXECUTION.preprocessing_cores if kinds.is_parallel(collection.stage) else 1


def by_attempt(*, mem_mb, runtime):
    """Memory in MB and minutes that grow with each attempt: once, twice, three times the amount."""
    return {
        "mem_mb": lambda wildcards, attempt: attempt * mem_mb,
        "runtime": lambda wildcards, attempt: attempt * runtime,
    }


def at_least(folder, *, mem_mb, runtime):
    """Memory in MB and minutes for the size of the collections that an artifact is made from, growing by attempt."""

    def once(estimate, least, wildcards):
        return estimate(REQUESTS, artifact_in(folder, wildcards), least) if REQUESTS else least

    return {
        "mem_mb": lambda wildcards, attempt: attempt * once(Requests.memory_mb, mem_mb, wildcards),
        "runtime": lambda wildcards, attempt: min(LONGEST, attempt * once(Requests.minutes, runtime, wildcards)),
    }


def at_least_where_it_resumes(folder, *, mem_mb, runtime):
    """The same for a job that resumes in the next attempt where it was: its time does not grow with attempts."""
    amounts = at_least(folder, mem_mb=mem_mb, runtime=runtime)
    return amounts | {"runtime": lambda wildcards: min(LONGEST_RESUMED, amounts["runtime"](wildcards, attempt=1))}

"""GPUs of this machine for jobs that no scheduler gives any: each has one job, by a lock that ends with the job.

Snakemake counts the GPUs of its jobs on one machine, but does not say which they are. All users' jobs take turns.
"""

import fcntl
import os
import time
from pathlib import Path

from encore.storage import environment

FOLDER = Path("/tmp/encore-gpus")  # the same for all, whatever TMPDIR says; files are empty
JOBS = ("SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID", "JOB_ID")  # in which Snakemake runs: its GPUs may be counted from 0
DEVICES = Path("/dev")
VISIBLE = "CUDA_VISIBLE_DEVICES"
PAUSE = 1.0  # seconds between two looks


def visible() -> list[str]:
    """The GPUs that this process may use: those that the user names for CUDA, or the machine's by their numbers."""
    there, named = list(DEVICES.glob("nvidia[0-9]*")), os.environ.get(VISIBLE)
    if named is None or not there:  # a variable names none on a machine without
        return [str(number) for number in range(len(there))]
    return [name for name in dict.fromkeys(map(str.strip, named.split(","))) if name and not name.startswith("-")]


def lease(count: int = 1) -> None:
    """Hold so many GPUs until this process and what it becomes have ended, and let CUDA see no others.

    To be called before CUDA is. Waits while other jobs have them. Only the first call of a job that Snakemake has
    started on this machine does anything, and only where there is a GPU: processes that train together have those of
    the job.
    """
    if not environment.number(environment.LEASE_GPUS):
        return
    os.environ[environment.LEASE_GPUS] = "0"
    gpus, held = visible(), dict[str, int]()
    count = min(count, len(gpus))  # that there are too few is said later
    if not count:
        return
    entrance = _opened("entrance")  # so that jobs for few GPUs do not overtake one for several
    fcntl.flock(entrance, fcntl.LOCK_EX)
    waits = False
    while True:
        for gpu in gpus:
            if len(held) < count and gpu not in held and (file := _taken(gpu)) is not None:
                held[gpu] = file
        if len(held) == count:
            break
        if not waits:
            print(f"waiting for {'a GPU' if count == 1 else f'{count} GPUs'} that no other job has", flush=True)
            waits = True
        time.sleep(PAUSE)
    os.close(entrance)
    for file in held.values():
        os.set_inheritable(file, True)  # torchrun, which this process may become, goes on to hold it
    os.environ[VISIBLE] = ",".join(gpu for gpu in gpus if gpu in held)


def _taken(gpu: str) -> int | None:
    """The file of a GPU, which this process then holds; None where another does."""
    file = _opened(gpu)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _opened(name: str) -> int:
    """A file to lock, which every user can open."""
    mask = os.umask(0)
    try:
        folder = FOLDER / "".join(os.environ.get(job, "") for job in JOBS)
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / f"{name.replace('/', '_')}.lock", os.O_RDONLY | os.O_CREAT, 0o666)
    finally:
        os.umask(mask)

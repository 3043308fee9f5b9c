"""GPUs of this machine for jobs that no scheduler gives any: each has one job, until that has ended in whatever way.

Snakemake counts the GPUs of its jobs on one machine, but does not say which they are. All users' jobs take turns. Who
has a GPU has bound an abstract socket, a name that Linux holds without a file: another user can neither take it away
nor put a link, a pipe or a folder of theirs in its place.
"""

import errno
import hashlib
import os
import socket
import time
from pathlib import Path

from encore.storage import environment

PREFIX = "encore-gpu"  # of the names
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
    gpus, held = visible(), dict[str, socket.socket]()
    count = min(count, len(gpus))  # that there are too few is said later
    if not count:
        return
    entrance: socket.socket | None = None  # one job at a time is in it, so that none for few overtakes one for several
    waits = False
    while True:
        if entrance := entrance or _taken("entrance"):
            for gpu in gpus:
                if len(held) < count and gpu not in held and (name := _taken(gpu)) is not None:
                    held[gpu] = name
            if len(held) == count:
                break
        if not waits:
            print(f"waiting for {'a GPU' if count == 1 else f'{count} GPUs'} that no other job has", flush=True)
            waits = True
        time.sleep(PAUSE)
    entrance.close()
    for name in held.values():
        name.set_inheritable(True)  # torchrun, which this process may become, goes on to hold it
        name.detach()
    os.environ[VISIBLE] = ",".join(gpu for gpu in gpus if gpu in held)


def _taken(gpu: str) -> socket.socket | None:
    """The name of a GPU, which this process then holds; None where another does."""
    of_job = "".join(os.environ.get(job, "") for job in JOBS)
    name = f"\0{PREFIX}-{hashlib.sha256(f'{of_job}/{gpu}'.encode()).hexdigest()[:32]}"  # sockets take 107 bytes
    bound = socket.socket(socket.AF_UNIX)
    try:
        bound.bind(name)
    except OSError as error:
        bound.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return bound

"""Environment variables: torchrun's number of processes, the user's switches, and the run's file of a job."""

import os

from encore.errors import EncoreError, quoted

RANK, SIZE, LOCAL_RANK, LOCAL_SIZE = "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"
TRACEBACK = "ENCORE_TRACEBACK"  # not empty: a command shows where an unexpected error came from
ALLOW_CPU = "ENCORE_ALLOW_CPU"  # 1: jobs that SLURM gave a GPU, and that see none, compute on the processor
LEASE_GPUS = "ENCORE_LEASE_GPUS"  # 1: jobs of one machine, each of which takes GPUs that no other has
KEEP_VECTORS = "ENCORE_KEEP_VECTORS"  # 0: vectors that are no longer needed are removed
DATA_ROOT = "ENCORE_DATA_ROOT"  # where downloads are kept
WORKERS = "ENCORE_WORKERS"  # processes that make batches for each process of a training
CHECKPOINT_SECONDS = "ENCORE_CHECKPOINT_SECONDS"  # between two checkpoints of a training
JAVA_MB = "ENCORE_JAVA_MB"  # memory that Java may take
RUN = "ENCORE_RUN"  # the run's file, set for every job
THREADS = "OMP_NUM_THREADS"  # those that Snakemake gives a job; 0 means all cores
# The value without a variable, then the least and the greatest that it can have.
NUMBERS = {RANK: (0, 0, 10**6), SIZE: (1, 1, 10**6), LOCAL_RANK: (0, 0, 10**6), LOCAL_SIZE: (1, 1, 10**6)}
NUMBERS |= {THREADS: (0, 0, 10**6), ALLOW_CPU: (0, 0, 1), LEASE_GPUS: (0, 0, 1), KEEP_VECTORS: (1, 0, 1)}
NUMBERS |= {WORKERS: (0, 0, 10**6), CHECKPOINT_SECONDS: (120, 0, 10**6), JAVA_MB: (1024, 1, 10**8)}


def text(name: str) -> str:
    """The value of an environment variable; empty if it is unset."""
    return os.environ.get(name, "")


def number(name: str) -> int:
    """The number that a variable of the environment holds, or what it counts as where it is unset or empty."""
    default, least, greatest = NUMBERS[name]
    said = text(name) or str(default)
    value = int(said) if said.isdecimal() and len(said) < 9 else -1
    if not least <= value <= greatest:
        numbers = f"{least} or {greatest}" if greatest == 1 else f"a whole number from {least} on"
        raise EncoreError(f"{name} is {quoted(said)} in the environment, and can be {numbers}; correct or unset it")
    return value

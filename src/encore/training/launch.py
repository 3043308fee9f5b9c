"""This process among those of one training, as torchrun sets it; without torchrun the only one."""

import os
import sys

from encore.errors import EncoreError
from encore.storage import environment, gpu_leases
from encore.storage.processes import end_with_parent


def rank() -> int:
    """This process's number among all."""
    found, size = (environment.number(name) for name in (environment.RANK, environment.SIZE))
    if found >= size:
        raise EncoreError(
            f"{environment.RANK} is {found} in the environment and {environment.SIZE} {size}; unset both, since a "
            "training starts its processes itself"
        )
    return found


def leads() -> bool:
    """True for the process that prints, validates and writes."""
    return rank() == 0


def start_processes(processes: int) -> None:
    """Become so many processes: for more than one, torchrun replaces this one and starts the program for each.

    On a machine without a scheduler it first takes a GPU for each.
    """
    if rank() or environment.text(environment.SIZE):
        end_with_parent()
    elif processes > 1:
        gpu_leases.lease(processes)
        torchrun = ["-m", __name__, "--standalone", f"--nproc-per-node={processes}"]
        os.execv(sys.executable, [sys.executable, *torchrun, *sys.argv])


def torchrun() -> None:
    """PyTorch's own, but quiet where a process fails: that one has printed why, in a line."""
    import logging

    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    try:
        run.main()
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        sys.exit(failure.exitcode if failure.exitcode > 0 else 1)


if __name__ == "__main__":
    torchrun()

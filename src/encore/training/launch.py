"""This process among those of one training, as torchrun sets it; without torchrun the only one."""

from __future__ import annotations

import os
import sys

from encore.storage.processes import end_with_parent


def rank() -> int:
    """This process's number among all."""
    return int(os.environ.get("RANK", "0"))


def size() -> int:
    """The number of processes that train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def local_rank() -> int:
    """This process's number on its machine, and that of its GPU."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def local_size() -> int:
    """The number of them on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def leads() -> bool:
    """True for the process that prints, validates and writes."""
    return rank() == 0


def start_processes(processes: int) -> None:
    """Become so many processes: for more than one, torchrun replaces this one and starts the program for each."""
    if "WORLD_SIZE" in os.environ:
        end_with_parent()
    elif processes > 1:
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

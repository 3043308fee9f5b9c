"""Which of several processes of one training this is, as torchrun tells it; without torchrun the first of one."""

from __future__ import annotations

import os
import sys


def rank() -> int:
    """This process's number among all."""
    return int(os.environ.get("RANK", "0"))


def size() -> int:
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def local_rank() -> int:
    """This process's number on its machine, and that of its GPU."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def leads() -> bool:
    """True in the one process that prints, validates and writes."""
    return rank() == 0


def start(processes: int) -> None:
    """Become so many processes: for more than one, torchrun takes this one's place and starts the program for each."""
    if processes > 1 and "WORLD_SIZE" not in os.environ:
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        os.execv(sys.executable, [sys.executable, *torchrun, *sys.argv])

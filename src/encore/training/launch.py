"""Which of several processes of one training this is, as torchrun tells it; without torchrun the first of one."""

from __future__ import annotations

import os


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

"""What one job needs: work of several kinds, and bytes of several kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from encore.models.config import EncoderConfig

Start = Literal["plain", "torch", "java"]
GB = 1e9
BASE = {"plain": 0.08 * GB, "torch": 0.32 * GB, "java": 0.2 * GB}  # memory of a process before it has read anything


@dataclass(frozen=True)
class Work:
    """An amount of one kind of work; how long it takes is the machine's.

    ``kind``: ``train``, ``encode``, ``search`` and ``graph`` are floating-point operations; ``tokens``, ``documents``,
    ``lines`` (of a run) and ``bytes`` (downloaded, written) are what they say. ``shape``, ``rows`` and ``length`` say
    what model on how many texts of how many tokens, since small batches are slower; ``threads`` share the work.
    """

    kind: str
    amount: float
    shape: EncoderConfig | None = None
    rows: float = 1
    length: float = 1
    threads: int = 1


@dataclass(frozen=True)
class Cost:
    """What a job needs.

    ``kept`` bytes stay on the disk, ``scratch`` lie there while it runs; ``ram`` and ``gpu_memory`` are bytes at their
    peak. ``gpu``: it computes on one where there is one. ``download``: bytes from the network, None where nobody says.
    """

    works: tuple[Work, ...] = ()
    start: Start = "plain"
    kept: float = 0.0
    scratch: float = 0.0
    ram: float = 0.0
    gpu: bool = False
    gpu_memory: float = 0.0
    processes: int = 1
    threads: int = 1
    download: float | None = 0.0
    licence: str = ""
    notes: tuple[str, ...] = ()

    @property
    def memory(self) -> float:
        """Bytes of RAM of the whole process."""
        return BASE[self.start] + self.ram

    @property
    def flops(self) -> float:
        """Floating-point operations."""
        return sum(work.amount for work in self.works if work.kind in ("train", "encode", "search", "graph"))

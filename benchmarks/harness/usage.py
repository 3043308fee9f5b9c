"""What a program takes, with all that it starts: seconds of the processor, and memory that cannot be reclaimed."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import psutil

from encore.errors import EncoreError

EVERY = 0.2  # seconds between two looks


def measured(command: Sequence[str], folder: Path, log: Path) -> dict[str, float]:
    """Run a program in a folder.

    Returns:
        ``cpu_seconds``, and ``memory_mb`` that its processes held together at most, mapped files not included.

    Raises:
        EncoreError: it failed; with its last line.
    """
    peak, over = 0, threading.Event()
    with log.open("w") as output:
        process = psutil.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)

        def watch() -> None:
            nonlocal peak
            while not over.wait(EVERY):
                peak = max(peak, _held(process))

        watching = threading.Thread(target=watch)
        watching.start()
        before = _children_seconds()
        code = process.wait()
        over.set()
        watching.join()
    if code:
        raise EncoreError(f"{log}: {(log.read_text().splitlines() or ['no message'])[-1]}")
    return {"cpu_seconds": round(_children_seconds() - before, 2), "memory_mb": round(peak / 1e6)}


def _held(process: psutil.Process) -> int:
    """Bytes of memory of a process and its descendants that are no file's."""
    total = 0
    try:
        for each in (process, *process.children(recursive=True)):
            memory = each.memory_info()
            total += memory.rss - memory.shared
    except psutil.NoSuchProcess:
        pass
    return total


def _children_seconds() -> float:
    """Seconds of the processor of all that this process has waited for."""
    times = psutil.Process().cpu_times()
    return float(times.children_user + times.children_system)

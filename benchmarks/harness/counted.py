"""What a program does, counted instead of timed, so that the numbers are the same on a busy machine."""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from encore.errors import EncoreError


def counted(command: Sequence[str], folder: Path, log: Path) -> dict[str, float]:
    """Run ``python PROGRAM FLAGS`` in this process and a folder.

    Returns:
        ``calls`` of functions, Python's and those that are written in C, and ``bytes`` that are allocated between two
        of them, summed up: work that NumPy does in one call shows there if it needs memory.

    Raises:
        EncoreError: it failed.
    """
    found = {"calls": 0.0, "bytes": 0.0}
    held = 0

    def look(frame: Any, event: str, argument: Any) -> None:
        nonlocal held
        now, peak = tracemalloc.get_traced_memory()
        found["calls"] += event in ("call", "c_call")
        found["bytes"] += peak - held
        held = now
        tracemalloc.reset_peak()

    _, program, *flags = command[command.index(sys.executable) :]
    before = Path.cwd()
    with log.open("w") as output, contextlib.redirect_stdout(output), mock.patch.object(sys, "argv", [program, *flags]):
        os.chdir(folder)
        tracemalloc.start()
        sys.setprofile(look)
        try:
            runpy.run_path(program, run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                raise EncoreError(f"{program} failed in {folder}") from ended
        finally:
            sys.setprofile(None)
            tracemalloc.stop()
            os.chdir(before)
    return found

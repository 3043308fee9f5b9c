"""Benchmarks as processes of their own, each with a log and a limit, so that one that fails stops no other."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DONE = "done"


def run_part(
    name: str, command: Sequence[str], most: float, log: Path, environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """How a part ended, and its seconds; it is killed after ``most`` of them."""
    print(f"{name} (at most {most:.0f} s)", flush=True)
    started = time.monotonic()
    with log.open("w") as output:
        try:
            code = subprocess.run(
                command, stdout=output, stderr=subprocess.STDOUT, timeout=most, check=False, env=environment
            ).returncode
            ended = DONE if code == 0 else f"exit code {code}"
        except subprocess.TimeoutExpired:
            ended = "out of time"
    return {"part": name, "ended": ended, "seconds": round(time.monotonic() - started, 1)}

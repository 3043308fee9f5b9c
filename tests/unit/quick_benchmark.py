"""A benchmark's program at tiny sizes."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

import inside
import pytest

ROOT = Path(__file__).parents[2]


def quick(program: str, output: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A benchmark of several parts, whose parts alone are processes of their own."""
    path = str(ROOT / f"benchmarks/{program}.py")
    given = ("--output", output, "--quick", *words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT / "src"))
        patch.setenv("OMP_NUM_THREADS", "1")
        return inside.ended(program, given, ROOT, lambda: runpy.run_path(path, run_name="__main__"))

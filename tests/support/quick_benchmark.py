"""A benchmark's program at tiny sizes."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forks, inside

ROOT = Path(__file__).parents[2]


def quick(program: str, output: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A benchmark of several parts, whose parts are separate processes: forks of one that has imported the library."""
    path = str(ROOT / f"benchmarks/{program}.py")
    given = ("--output", output, "--quick", *words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT / "src"))
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setattr(sys, "executable", forks.python())
        return inside.ended(program, given, ROOT, lambda: runpy.run_path(path, run_name="__main__"))

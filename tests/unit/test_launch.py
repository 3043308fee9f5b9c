"""Several processes of one program, started by the program itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
from encore.cli_support import run
from encore.errors import EncoreError
from encore.training import launch

def main():
    launch.start(2)
    if launch.rank() == 1:
        raise EncoreError("the texts are missing; make them")
    print("rank", launch.rank(), "of", launch.size(), flush=True)

run(main)
"""


def test_a_process_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, env=environment, check=False, timeout=120
    )
    assert done.returncode == 1
    assert done.stderr == "error: the texts are missing; make them\n"
    assert done.stdout in ("", "rank 0 of 2\n")  # unless it was ended before it could

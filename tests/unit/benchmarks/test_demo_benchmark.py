"""The benchmark of the demo: whose seconds are counted, and what of them is overhead."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.quick_benchmark import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import demo

# In place of Snakemake: it ends at once, and leaves a process that works for a second and a half.
LEAVES_A_PROCESS = """
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        while time.process_time() < 1.5:
            pass
    os._exit(0)
"""
FACTS = {"seconds": 1.0, "device": "cpu", "python": "3.11", "packages": {}}


def counted(folder: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, which waits for all that become its children."""
    program = f"import sys; sys.path.insert(0, 'benchmarks'); import demo; print(demo.cpu_seconds([], {str(folder)!r}))"
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_what_is_left_running_is_waited_for_and_counted(tmp_path: Path) -> None:
    (tmp_path / "snakemake.py").write_text(LEAVES_A_PROCESS)
    done = counted(tmp_path)
    assert float(done.stdout) >= 1.5, done.stderr


@pytest.mark.slow
def test_a_run_that_fails_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "snakemake.py").write_text("import sys; sys.exit(3)")
    done = counted(tmp_path)
    assert done.returncode != 0
    assert "Snakemake ended with 3" in done.stderr


def test_seconds_are_summed_by_program_and_the_rest_is_overhead(tmp_path: Path) -> None:
    jobs = [("search", 3.0, 2.5), ("encode", 9.0, 8.0), ("search", 4.0, 3.5)]
    for number, (program, cpu, own) in enumerate(jobs):
        noted = FACTS | {"stage": f"{program}.variant", "cpu_seconds": cpu, "own_cpu_seconds": own}
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "run.json").write_text(json.dumps(noted))
    encode, search, around = demo.by_program(sorted(tmp_path.rglob("run.json")), total=20.0)
    assert encode == {"program": "encode", "jobs": 1, "cpu_seconds": 9, "own_work": 8}
    assert search == {"program": "search", "jobs": 2, "cpu_seconds": 7, "own_work": 6}
    assert (around["cpu_seconds"], around["own_work"]) == (4, 0)

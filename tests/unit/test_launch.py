"""Several processes of one program, started by the program itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from encore.errors import EncoreError
from encore.training import machine

PROGRAM = """
from encore.storage.program import run
from encore.errors import EncoreError
from encore.training import launch

def main():
    launch.start_processes(2)
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
        [sys.executable, program], capture_output=True, text=True, env=environment, check=False, timeout=600
    )
    assert done.returncode == 1
    assert done.stderr == "error: the texts are missing; make them\n"
    assert done.stdout in ("", "rank 0 of 2\n")  # unless it was ended before it could


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(EncoreError, match=r"more processes than GPUs \(2\); lower `execution: processes`"):
        machine.prepare({})


@pytest.mark.parametrize("variable", ["SLURM_JOB_GPUS", "SLURM_STEP_GPUS"])
def test_a_job_that_does_not_see_its_gpu_is_refused(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would train on the node's processor for days, and say nothing."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv(variable, "0")
    with pytest.raises(EncoreError, match="SLURM gave this job a GPU that torch does not see; install the build"):
        machine.prepare({})
    monkeypatch.setenv("ENCORE_ALLOW_CPU", "1")
    assert machine.prepare({}).type == "cpu"


def test_a_gpu_without_bf16_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
    with pytest.raises(EncoreError, match="Tesla T4 does not compute in bf16; set `numerics: precision: fp32`"):
        machine.prepare({"precision": "bf16"})

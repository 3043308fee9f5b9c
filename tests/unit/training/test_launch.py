"""Several processes of one program, started by the program itself."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from encore.errors import EncoreError
from encore.training import machine

ALLOCATOR = ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"]  # variables of the environment
PROGRAM = """
from encore.storage.program import run
from encore.errors import EncoreError
from encore.storage import environment
from encore.training import launch

def main():
    launch.start_processes(2)
    if launch.rank() == 1:
        raise EncoreError("the texts are missing; make them")
    print("rank", launch.rank(), "of", environment.number(environment.SIZE), flush=True)

run(main)
"""


@pytest.mark.slow
def test_a_process_that_fails_says_why_in_one_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, env=environment, check=False, timeout=600
    )
    assert done.returncode == 1
    assert done.stderr == "error: the texts are missing; make them\n"
    assert "rank 0 of 2\n".startswith(done.stdout)  # which it may not have ended


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


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A GPU from before A100, as far as torch says."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    monkeypatch.setattr(torch.cuda, "get_arch_list", lambda: ["sm_75", "sm_90a", "sm_120", "compute_120"])
    yield
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_deterministic_debug_mode("default")


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("precision", ["bf16", "tf32"])
def test_a_gpu_without_a_precision_is_refused_at_once(precision: str) -> None:
    message = f"Tesla T4 does not compute in {precision}; set `numerics: precision: fp32`"
    with pytest.raises(EncoreError, match=message):
        machine.prepare({"precision": precision})


@pytest.mark.usefixtures("gpu")
def test_a_gpu_that_torch_has_no_kernels_for_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.prepare({}).type == "cuda"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 0))
    with pytest.raises(EncoreError, match="no kernels for a GPU as old as Tesla T4; take a newer one, or a build"):
        machine.prepare({})


@pytest.mark.usefixtures("gpu")
def test_a_gpu_rounds_factors_only_where_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    for precision in ("tf32", "fp32", "tf32", "bf16"):
        machine.prepare({"precision": precision})
        assert torch.backends.cuda.matmul.allow_tf32 is (precision == "tf32")


@pytest.mark.parametrize("own", [{}, *({name: "max_split_size_mb:128"} for name in ALLOCATOR)])
@pytest.mark.slow
def test_memory_of_a_gpu_comes_in_segments_that_grow_unless_its_user_says_otherwise(own: dict[str, str]) -> None:
    program = (
        "import torch; from unittest import mock; from encore.training import machine;"
        "mock.patch.object(torch.cuda, 'set_device').start();"
        "mock.patch.object(torch.cuda, 'device_count', return_value=1).start();"
        "mock.patch.object(torch.cuda, 'get_arch_list', return_value=[]).start();"
        "settings = torch._C._accelerator_getAllocatorSettings;"
        "mock.patch.object(torch.cuda, 'is_available', return_value=False).start();"
        "machine.prepare({}); before = settings();"
        "mock.patch.object(torch.cuda, 'is_available', return_value=True).start();"
        "machine.prepare({}); print(before, settings(), sep='|')"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ALLOCATOR} | own
    printed = subprocess.check_output([sys.executable, "-c", program], env=environment, text=True, timeout=600)
    (wanted,) = own.values() or [""]
    assert printed.splitlines()[-1] == f"{wanted}|{wanted or 'expandable_segments:True'}"


@pytest.mark.usefixtures("gpu")
def test_a_gpu_repeats_itself_only_where_it_is_asked_to() -> None:
    for deterministic in (True, False):
        machine.prepare({"deterministic": deterministic})
        assert torch.are_deterministic_algorithms_enabled() is deterministic
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


@pytest.mark.usefixtures("gpu")
def test_beside_a_gpu_a_process_has_no_more_threads_than_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight processes on 40 cores; on a processor the number may round sums otherwise, so the run decides."""
    monkeypatch.setattr(machine, "cores", lambda: 40)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    before, found = torch.get_num_threads(), []
    for threads, is_there in ((16, True), (2, True), (16, False)):
        monkeypatch.setattr(torch.cuda, "is_available", lambda is_there=is_there: is_there)
        machine.prepare({"threads": threads})
        found.append(torch.get_num_threads())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("OMP_NUM_THREADS", "24")  # those that Snakemake gave the job
    machine.prepare({"threads": 16})
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)
    assert found == [5, 2, 16]


def test_a_processor_repeats_itself_and_does_not_round_factors() -> None:
    machine.prepare({})
    assert torch.are_deterministic_algorithms_enabled()
    with pytest.raises(EncoreError, match="a processor does not compute in tf32; set `numerics: precision: fp32`"):
        machine.prepare({"precision": "tf32"})


def test_a_gpu_that_is_not_used_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "DRIVER", tmp_path / "nvidia0")
    machine.prepare({})
    assert capsys.readouterr().out == ""
    (tmp_path / "nvidia0").touch()
    machine.prepare({})
    assert "does not see this machine's GPU (envs/gpu.txt has a build that does)" in capsys.readouterr().out

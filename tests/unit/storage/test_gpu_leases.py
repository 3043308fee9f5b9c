"""GPUs of a machine without a scheduler: each is one job's, until that has ended in whatever way."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch

from encore.storage import gpu_leases
from encore.training import machine
from tests.support.other_user import BECOMING, READING

JOB = """
import os, sys
from pathlib import Path
from encore.storage import gpu_leases
gpu_leases.PREFIX, gpu_leases.PAUSE, gpu_leases.DEVICES = sys.argv[1], 0.02, Path(sys.argv[2])
gpu_leases.lease(int(sys.argv[3]))
gpu_leases.lease(int(sys.argv[3]))  # as of a process that trains with others
if "becomes" in sys.argv:
    later = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True); input()"
    os.execv(sys.executable, [sys.executable, "-c", later])
print(os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
input()
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a job for some of four GPUs, which says what it has and then works until it is ended."""
    jobs = []
    for number in range(4):
        (tmp_path / f"nvidia{number}").touch()
    (tmp_path / "nvidiactl").touch()

    def begin(count: int, *how: str, user: Sequence[str] = (), **environment: str) -> "subprocess.Popen[str]":
        kept = {name: value for name, value in os.environ.items() if name != gpu_leases.VISIBLE}
        jobs.append(
            subprocess.Popen(
                [*user, sys.executable, "-c", JOB, str(tmp_path)[-60:], str(tmp_path), str(count), *how],
                env=kept | {"ENCORE_LEASE_GPUS": "1"} | environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        return jobs[-1]

    yield begin
    for job in jobs:
        job.kill()
        job.communicate()


def said(job: "subprocess.Popen[str]") -> str:
    assert job.stdout
    return job.stdout.readline().strip()


def test_each_job_has_gpus_of_its_own_until_it_is_killed(start: Start) -> None:
    first, second = start(1), start(2)
    had = [said(job) for job in (first, second)]
    assert sorted(",".join(had)) == [",", ",", "0", "1", "2"]
    several = start(2)
    assert said(several) == "waiting for 2 GPUs that no other job has"
    first.kill()
    assert said(several).split(",") == sorted([had[0], "3"])


def test_a_job_for_one_gpu_does_not_overtake_one_for_several(start: Start) -> None:
    held = [start(1) for _ in range(3)]
    names = [said(job) for job in held]
    several = start(2)
    assert said(several) == "waiting for 2 GPUs that no other job has"
    behind = start(1)  # there is one that is free
    held[0].kill()
    assert said(several) == ",".join(sorted([names[0], "3"]))
    assert said(behind) == "waiting for a GPU that no other job has"
    held[1].kill()
    assert said(behind) == names[1]


def test_what_a_job_becomes_holds_its_gpus(start: Start) -> None:
    """As torchrun does in place of a training's first process."""
    first = start(3, "becomes")
    assert said(first) == "0,1,2"
    second = start(2)
    assert said(second) == "waiting for 2 GPUs that no other job has"
    assert first.stdin
    first.stdin.write("\n")
    first.stdin.flush()
    assert said(second) == "0,3"


def test_gpus_of_different_jobs_of_a_scheduler_may_have_the_same_numbers(start: Start) -> None:
    named = {"CUDA_VISIBLE_DEVICES": "0"}
    jobs = [start(1, **named, **job) for job in ({}, {"SLURM_JOB_ID": "7"}, {"SLURM_JOB_ID": "8"}, {"JOB_ID": "9.x"})]
    assert [said(job) for job in jobs] == ["0"] * 4
    assert said(start(1, **named, SLURM_JOB_ID="7")) == "waiting for a GPU that no other job has"


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, as root can")
def test_users_of_one_machine_take_turns_and_leave_no_file(start: Start, tmp_path: Path) -> None:
    """Locks were files of a folder where everybody could put a link to a file of somebody else in their place."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    before = set(tmp_path.iterdir())
    theirs = start(3, user=(*BECOMING, *READING))
    assert said(theirs) == "0,1,2"
    ours = start(2)
    assert said(ours) == "waiting for 2 GPUs that no other job has"
    assert set(tmp_path.iterdir()) == before
    theirs.kill()
    assert said(ours) == "0,3"


@pytest.mark.parametrize(
    ("environment", "count", "has"),
    [
        ({"CUDA_VISIBLE_DEVICES": "2, MIG-GPU-5/1/0"}, 1, "2"),
        ({"CUDA_VISIBLE_DEVICES": "MIG-GPU-5/1/0,3"}, 2, "MIG-GPU-5/1/0,3"),
        ({"CUDA_VISIBLE_DEVICES": "2"}, 4, "2"),  # what is too few is said by those that train
        ({"CUDA_VISIBLE_DEVICES": "2,2"}, 2, "2"),
        ({"CUDA_VISIBLE_DEVICES": ""}, 1, ""),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, 1, "-1"),
        ({"CUDA_VISIBLE_DEVICES": "1,2", "ENCORE_LEASE_GPUS": ""}, 1, "1,2"),  # a scheduler's, or a user's own
        ({"ENCORE_LEASE_GPUS": "0"}, 1, "None"),
    ],
)
def test_what_the_user_named_is_what_there_is(start: Start, environment: dict[str, str], count: int, has: str) -> None:
    assert said(start(count, **environment)) == has


def test_a_job_takes_its_gpu_before_cuda_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[str] = []
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(gpu_leases, "PREFIX", str(tmp_path)[-60:])
    monkeypatch.setattr(gpu_leases, "DEVICES", tmp_path)
    monkeypatch.setenv("ENCORE_LEASE_GPUS", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(seen.append(os.environ["CUDA_VISIBLE_DEVICES"])))
    machine.prepare({"threads": torch.get_num_threads()})
    assert set(seen) == {"5"}


def test_a_variable_names_no_gpu_on_a_machine_without(start: Start, tmp_path: Path) -> None:
    """Its jobs would take turns on nothing."""
    for device in tmp_path.glob("nvidia[0-9]"):
        device.unlink()
    jobs = [start(1, CUDA_VISIBLE_DEVICES="0") for _ in range(2)]
    assert [said(job) for job in jobs] == ["0", "0"]


@pytest.mark.gpu
def test_jobs_have_real_gpus_of_their_own(tmp_path: Path) -> None:
    """One job more than there are GPUs: the last one waits."""
    asks = JOB.replace('os.environ.get("CUDA_VISIBLE_DEVICES")', "torch.cuda.get_device_properties(0).uuid")
    code, seen = f"import torch\n{asks}", len(gpu_leases.visible())
    command = [sys.executable, "-c", code, str(tmp_path)[-60:], "/dev", "1"]
    environment = os.environ | {"ENCORE_LEASE_GPUS": "1"}
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    jobs = [subprocess.Popen(command, env=environment, text=True, **piped) for _ in range(seen)]
    held = [said(job) for job in jobs]
    assert len(set(held)) == seen > 0
    jobs.append(subprocess.Popen(command, env=environment, text=True, **piped))
    assert said(jobs[-1]) == "waiting for a GPU that no other job has"
    jobs[0].kill()
    assert said(jobs[-1]) == held[0]
    for job in jobs:
        job.kill()
        job.communicate()

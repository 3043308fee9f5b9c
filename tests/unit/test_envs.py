"""The locks name what is installed here, and the other recipes name nothing else."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ENVS = ROOT / "envs"
OWN = {"encore-ir", "pip", "wheel"}
CUDA = re.compile(r"nvidia-|cuda-|triton$")  # what PyTorch brings along where its build is not the CPU's


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def lock(name: str) -> dict[str, str]:
    """Versions by package; any line that is not ``name==version`` fails."""
    lines = [line for line in (ENVS / name).read_text().splitlines() if not line.startswith("#")]
    pairs = [re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.]*)", line) for line in lines]
    assert None not in pairs, [line for line, pair in zip(lines, pairs, strict=True) if pair is None]
    assert len({canonical(pair[1]) for pair in pairs if pair}) == len(pairs)
    return {canonical(pair[1]): pair[2] for pair in pairs if pair}


def installed() -> dict[str, str]:
    return {canonical(found.name): found.version.partition("+")[0] for found in metadata.distributions()}


def test_the_cpu_lock_is_what_is_installed() -> None:
    here = {name: version for name, version in installed().items() if name not in OWN and not CUDA.match(name)}
    if "faiss-cpu" not in here:
        pytest.skip("this is a GPU environment")
    assert lock("cpu.txt") == here, "make the locks anew with `bash envs/lock.sh .venv/bin/python`"


def test_the_gpu_lock_differs_in_faiss_alone() -> None:
    cpu, gpu = lock("cpu.txt"), lock("gpu.txt")
    assert cpu.keys() - gpu.keys() == {"faiss-cpu"}
    assert gpu.keys() - cpu.keys() == {"faiss-gpu-cu12"}
    assert {name: cpu[name] for name in cpu.keys() & gpu.keys()} == {
        name: gpu[name] for name in cpu.keys() & gpu.keys()
    }


def test_locked_packages_find_their_needs_in_the_lock() -> None:
    """So that ``pip install --no-deps`` of the lock is a whole environment."""
    from packaging.requirements import Requirement

    locked = lock("cpu.txt")
    assert locked.keys() >= {"torch", "snakemake"}
    for package in locked:
        for text in metadata.requires(package) or []:
            need = Requirement(text)
            if CUDA.match(canonical(need.name)):
                continue
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                assert canonical(need.name) in locked, f"{package} needs {need}"
                assert need.specifier.contains(locked[canonical(need.name)], prereleases=True), (
                    f"{package} needs {need}"
                )


def test_conda_takes_its_packages_from_the_cpu_lock() -> None:
    recipe = yaml.safe_load((ENVS / "environment.yaml").read_text())
    assert recipe["dependencies"] == ["python=3.11", "pip", {"pip": ["--requirement cpu.txt"]}]


def test_the_container_takes_its_packages_from_a_lock() -> None:
    recipe = (ENVS / "Dockerfile").read_text()
    assert re.search(r"^FROM python:3\.11-", recipe, re.M)
    assert re.search(r"^ARG LOCK=cpu\.txt$", recipe, re.M)
    assert re.findall(r"^RUN pip install (.*)$", recipe, re.M) == [
        "--requirement /opt/lock.txt",
        "--no-deps --no-build-isolation --editable .",
    ]


def test_the_container_runs_as_a_user_that_owns_the_repository_alone() -> None:
    lines = (ENVS / "Dockerfile").read_text().splitlines()
    (user,) = (number for number, line in enumerate(lines) if line.startswith("USER "))
    assert lines[user] == "USER encore"
    assert not [line for line in lines[user:] if line.startswith("RUN")]
    assert "COPY --chown=encore:encore . ." in lines[:user]


def test_the_script_that_locks_gives_these_locks(tmp_path: Path) -> None:
    (tmp_path / "lock.sh").write_text((ENVS / "lock.sh").read_text())
    done = subprocess.run(
        ["bash", "lock.sh", sys.executable], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / name).read_text() for name in ("cpu.txt", "gpu.txt")] == [
        (ENVS / name).read_text() for name in ("cpu.txt", "gpu.txt")
    ]

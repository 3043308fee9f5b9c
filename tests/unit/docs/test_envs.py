"""The locks name what is installed here, and the other recipes name nothing else."""

import re
from importlib import metadata
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
ENVS = ROOT / "envs"
OWN = {"encore-ir", "pip", "wheel"}
CUDA = re.compile(r"nvidia-|cuda-|triton$")  # what PyTorch brings along where its build is not the CPU's


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def lock(*names: str) -> dict[str, str]:
    """Versions by package; a line that is not ``name==version`` with digests, or another lock, fails."""
    versions: dict[str, str] = {}
    for name in names:
        text = re.sub(r"^#.*\n", "", (ENVS / name).read_text(), flags=re.M).replace("\\\n", "")
        for line in text.splitlines():
            if other := re.fullmatch(r"--requirement (\w+\.txt)", line):
                versions |= lock(other[1])
                continue
            pinned = re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][A-Za-z0-9.]*)((?: +--hash=sha256:[0-9a-f]{64})+) *", line)
            assert pinned, line[:100]
            assert canonical(pinned[1]) not in versions, pinned[1]
            versions[canonical(pinned[1])] = pinned[2]
    return versions


def installed() -> dict[str, str]:
    return {canonical(found.name): found.version.partition("+")[0] for found in metadata.distributions()}


def test_the_cpu_lock_is_what_is_installed() -> None:
    here = {name: version for name, version in installed().items() if name not in OWN and not CUDA.match(name)}
    if "faiss-cpu" not in here:
        pytest.skip("this is a GPU environment")
    assert lock("cpu.txt") == here, "make the locks anew with `bash envs/lock.sh .venv/bin/python`"


def test_the_gpu_lock_differs_in_faiss_and_cuda_alone() -> None:
    cpu, gpu = lock("cpu.txt"), lock("gpu.txt")
    assert cpu.keys() - gpu.keys() == {"faiss-cpu"}
    assert {name for name in gpu.keys() - cpu.keys() if not CUDA.match(name)} == {"faiss-gpu-cu12"}
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
    assert recipe["dependencies"] == [
        "python=3.11",
        "pip",
        {"pip": ["--requirement cpu.txt", "--requirement cuda.txt"]},
    ]


def test_the_container_takes_its_packages_from_a_lock() -> None:
    recipe = (ENVS / "Dockerfile").read_text()
    assert re.search(r"^ARG BASE=python:3\.11-.*\nFROM \${BASE}$", recipe, re.M)
    assert re.search(r"^ARG LOCK=cpu\.txt$", recipe, re.M)
    assert re.findall(r"^RUN pip install (.*)$", recipe, re.M) == [
        "--require-hashes --requirement /opt/envs/cuda.txt --requirement /opt/envs/${LOCK}",
        "--no-deps --no-build-isolation --editable .",
    ]


def test_the_container_runs_as_a_user_that_owns_the_repository_alone() -> None:
    lines = (ENVS / "Dockerfile").read_text().splitlines()
    (user,) = (number for number, line in enumerate(lines) if line.startswith("USER "))
    assert lines[user] == "USER encore"
    assert not [line for line in lines[user:] if line.startswith("RUN")]
    assert "COPY --chown=encore:encore . ." in lines[:user]


def test_make_installs_nothing_whose_digest_is_not_in_a_lock() -> None:
    installs = re.findall(r"\$\(PIP\) (.*?)(?:;|$)", (ROOT / "Makefile").read_text(), re.M)
    assert installs == [
        "--no-deps --require-hashes --requirement benchmarks/requirements.txt",
        "--no-deps --require-hashes --no-index --find-links $(VENV)/torch --requirement envs/torch.txt",
        "--no-deps --require-hashes --requirement envs/cuda.txt",
        "--no-deps --require-hashes --requirement envs/cpu.txt",
        "--no-deps --no-build-isolation --editable .",
    ]

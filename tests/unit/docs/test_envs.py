"""The locks name what is installed here, and the other recipes name nothing else."""

import os
import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from tests.support.locks import ENVS, ROOT, canonical, lock

OWN = {"encore-ir", "pip", "wheel"}
CUDA = re.compile(r"nvidia-|cuda-|triton$")  # what PyTorch brings along where its build is not the CPU's


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
    assert {name for name in gpu.keys() - cpu.keys() if not CUDA.match(name)} == {"faiss-gpu"}
    assert gpu["faiss-gpu"] == cpu["faiss-cpu"]
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


def test_recipes_take_their_packages_from_the_locks_by_one_program() -> None:
    recipe = yaml.safe_load((ENVS / "environment.yaml").read_text())
    assert recipe["dependencies"] == ["python=3.11", "pip"]
    last = (ENVS / "environment.post-deploy.sh").read_text().splitlines()[-1]
    assert last == 'bash "$ENCORE_ENVS/install.sh" ${GPU:+gpu}'
    container = (ENVS / "Dockerfile").read_text()
    assert re.search(r"^ARG BASE=python:3\.11-.*\nFROM \${BASE}$", container, re.M)
    assert re.search(r"^ARG LOCK=cpu$", container, re.M)
    assert "RUN bash /opt/envs/install.sh ${LOCK}\n" in container
    assert re.findall(r"^RUN pip install (.*)$", container, re.M) == ["--no-deps --no-build-isolation --editable ."]


def test_the_container_runs_as_a_user_that_owns_the_repository_alone() -> None:
    lines = (ENVS / "Dockerfile").read_text().splitlines()
    (user,) = (number for number, line in enumerate(lines) if line.startswith("USER "))
    assert lines[user] == "USER encore"
    assert not [line for line in lines[user:] if line.startswith("RUN")]
    assert "COPY --chown=encore:encore . ." in lines[:user]


def test_nothing_is_installed_or_built_whose_digest_is_not_in_a_lock() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert re.findall(r"\$\(PIP\) (.*?)(?:;|$)", makefile, re.M) == [
        "--no-deps --require-hashes --requirement benchmarks/requirements.txt",
        "--retries 0 --no-deps --require-hashes --target $(@D) --requirement $<",
        "--no-deps --no-build-isolation --editable .",
    ]
    assert re.findall(r"version-check install (.*)$", makefile, re.M)[1:] == [
        "-qq --no-deps --require-hashes --requirement $<"
    ]
    installs = re.findall(r"^ *installed (.*)$", (ENVS / "install.sh").read_text(), re.M)
    assert installs == [
        '--require-hashes --no-index --find-links "$work/torch" --requirement "$envs/torch.txt"',
        '--require-hashes --requirement "$envs/cuda.txt"',
        '--require-hashes --requirement "$envs/build.txt"',
        '--require-hashes --no-build-isolation --requirement "$envs/$lock.txt"',
    ]
    assert lock("build.txt").keys() >= {"setuptools", "setuptools-scm", "wheel"}
    for name in lock("build.txt").keys() & lock("cpu.txt").keys():
        assert lock("build.txt")[name] == lock("cpu.txt")[name], name


REFUSED = {
    "Python 3.10 is not one of 3.11 to 3.14": ("3.10", "Linux x86_64", "cpu"),
    "no packages are locked for Darwin x86_64": ("3.12", "Darwin x86_64", "cpu"),
    "FAISS for GPUs is there for Linux on x86_64 alone": ("3.12", "Darwin arm64", "gpu"),
    "there is a lock for cpu and one for gpu, not for 'tpu'": ("3.12", "Linux x86_64", "tpu"),
    "some packages are compiled: install a C++ compiler": ("3.14", "Linux x86_64", "cpu"),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_python_or_platform_without_packages_is_refused_in_one_line(tmp_path: Path, message: str) -> None:
    python, machine, which = REFUSED[message]
    for name, answer in {"python": python, "uname": machine}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{answer}'\n")
        (tmp_path / name).chmod(0o755)
    for name in ("bash", "dirname"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    done = subprocess.run(
        ["bash", str(ENVS / "install.sh"), which], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("version", "free", "reason"),
    [
        ("2.13.0", 99, "2.13.0 here is that build, with which all tests run"),
        ("2.13.0+cpu", 9, "9 GB are free, of which it wants 10"),
    ],
)
def test_pypis_build_of_torch_is_skipped_by_name_where_it_is_there_or_has_no_room(
    version: str, free: int, reason: str, tmp_path: Path
) -> None:
    for name, answer in {"python": version, "df": f"Avail\n{free}"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '{answer}\\n'\n")
        (tmp_path / name).chmod(0o755)
    command = ["bash", str(ENVS / "check_torch.sh"), str(tmp_path / "python")]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"PyPI's build of PyTorch: skipped, since {reason}\n"


@pytest.mark.parametrize(("words", "lock"), [([], "cpu"), (["GPU=1"], "gpu")])
def test_make_with_gpu_1_installs_the_lock_for_gpus_then_and_later(tmp_path: Path, words: list[str], lock: str) -> None:
    for place in ("Makefile", "envs", "pyproject.toml"):
        (tmp_path / place).symlink_to(ROOT / place)

    def installed(*words: str) -> list[str]:
        command = ["make", "env", "--dry-run", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return re.findall(r"^bash envs/install\.sh (\w+)$", done.stdout, re.M)

    assert installed(*words) == [lock]
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/.gpu").touch()
    assert installed() == ["gpu"]


@pytest.mark.parametrize("found", ["nowhere", "unsupported"])
def test_make_without_a_python_that_it_can_use_names_what_to_install(tmp_path: Path, found: str) -> None:
    for place in ("Makefile", "envs", "pyproject.toml"):
        (tmp_path / place).symlink_to(ROOT / place)
    (tmp_path / "unsupported").write_text("#!/bin/sh\nexit 1\n")  # what Encore's question ends with
    (tmp_path / "unsupported").chmod(0o755)
    command = ["make", "env", f"PYTHON={tmp_path / found}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert line.startswith(
        f"error: there is no Python 3.11 to 3.14 with venv under the name {tmp_path / found}; install"
    )
    assert not (tmp_path / ".venv/bin").exists()

"""Which Python runs a job: Snakemake's own, conda's or the container's, as stand-ins for both programs record it."""

import hashlib
import sys
from pathlib import Path

import pytest

from tests.support.clones import BIN, NANO, Clone, Done

# Answers what Snakemake asks, and makes environments whose Python is the recording one.
CONDA = """\
case "$1 $2" in
"info --json") echo '{"conda_prefix": "HERE/conda", "platform": "linux-64"}' ;;
"config --get") echo '{"get": {"channel_priority": "strict"}}' ;;
"env create")
    while [ "$1" != --prefix ] && [ "$1" != -p ]; do shift; done
    mkdir -p "$2/bin" && cp "HERE/python" "$2/bin/python"
    ;;
*) echo "conda 25.1.0" ;;
esac
"""
ACTIVATE = 'export PATH="$1/bin:$PATH"\n'
# Runs the command as in a container where the host's files are visible: with a PATH of its own.
APPTAINER = """\
[ "$1" = --version ] && echo "apptainer version 1.4.0" && exit
while [ "$1" != encore.sif ]; do [[ $1 == */encore.sif ]] && break; shift; done
echo container >>"HERE/used"
PATH="HERE/container:/usr/bin:/bin" exec "${@:2}"
"""
PYTHON = r"""echo "${0%/bin/python} ${*//$'\n'/ }" >>"HERE/used"
case "$*" in "-m pip"*) exit ;; esac
exec "REAL" "$@"
"""


class StandIns:
    """Programs in a folder: they write which Python was called, and with what."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in {"conda": CONDA, "apptainer": APPTAINER}.items():
            self._program(f"bin/{name}", text)
        for name in ("python", "container/python", "bin/python"):
            self._program(name, PYTHON)
        self._program("conda/bin/activate", ACTIVATE)

    def _program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = text.replace("REAL", sys.executable).replace("HERE", str(self.folder))
        path.write_text(f"#!/bin/bash\n{text}")
        path.chmod(0o755)

    def run(self, clone: Clone, *arguments: str) -> Done:
        """Make nano's collection, as typed."""
        path = f"{self.folder}/bin:/usr/bin:/bin"
        command = (str(BIN / "snakemake"), *NANO, "--until", "collection", *arguments)
        return clone.run(*command, env={"PATH": path, "GPU": ""})

    @property
    def used(self) -> list[str]:
        """Lines: the place of a Python that was called, and its arguments."""
        path = self.folder / "used"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """In a folder without a blank, over which Snakemake stumbles when it runs the script in conda's environment."""
    return Clone.fresh(tmp_path / "clone")


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    return StandIns(tmp_path / "stand-ins")


def collection(clone: Clone) -> Path:
    return clone.folder("collections", "pydocs-stdlib")


def test_the_python_of_snakemake_runs_jobs_though_another_is_first_on_the_path(
    clone: Clone, stand_ins: StandIns
) -> None:
    stand_ins.run(clone).succeeded()
    assert (collection(clone) / "manifest.json").exists()
    assert stand_ins.used == []


@pytest.mark.slow
def test_conda_makes_an_environment_of_the_locks_and_its_python_runs_jobs(clone: Clone, stand_ins: StandIns) -> None:
    done = stand_ins.run(clone, "--sdm", "conda")
    done.succeeded()
    assert (collection(clone) / "manifest.json").exists()
    assert all("/.snakemake/conda/" in line.partition(" ")[0] for line in stand_ins.used)
    installed = [line for line in stand_ins.used if " -m pip " in line]
    assert any(f"--requirement {clone.root}/envs/cpu.txt" in line for line in installed)
    assert [line for line in stand_ins.used if "workflow/scripts/make.py collection" in line], stand_ins.used


def test_a_changed_lock_is_another_environment_of_conda(clone: Clone) -> None:
    """Snakemake compares the script that it runs in there, which has a digest of the locks."""
    script = (clone.root / "envs/environment.post-deploy.sh").read_text()
    names = ("packages", "torch", "cuda", "cpu", "gpu", "build")
    locks = b"".join((clone.root / f"envs/{name}.txt").read_bytes() for name in names)
    assert f"# locks: {hashlib.sha256(locks).hexdigest()[:16]}\n" in script, "run envs/lock.sh"


@pytest.mark.slow
def test_the_python_of_a_container_runs_jobs_though_the_hosts_is_visible(clone: Clone, stand_ins: StandIns) -> None:
    (clone.root / "encore.sif").touch()
    stand_ins.run(clone, "--sdm", "apptainer").succeeded()
    assert (collection(clone) / "manifest.json").exists()
    (began, called) = stand_ins.used
    assert began == "container"
    assert called.startswith(f"{stand_ins.folder}/container/python ")
    assert "workflow/scripts/make.py collection " in called

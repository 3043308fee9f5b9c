"""The scripts that start and stop a SLURM do what the tests of the workflow rely on."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent

pytestmark = pytest.mark.slurm


def srun(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["srun", *arguments], capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.usefixtures("cluster")
def test_jobs_get_the_gpus_they_ask_for() -> None:
    shown = ["bash", "-c", "echo $CUDA_VISIBLE_DEVICES"]
    assert srun("--gres=gpu:1", *shown).stdout.strip() == "0"
    assert srun("--gpus=2", "--partition=gpu", *shown).stdout.strip() == "0,1"
    refused = srun("--gres=gpu:3", "true")
    assert refused.returncode != 0
    assert "not available" in refused.stderr


@pytest.mark.usefixtures("cluster")
def test_memory_and_processors_beyond_the_node_are_refused() -> None:
    assert srun("--mem=32000", "--cpus-per-task=8", "true").returncode == 0
    assert srun("--mem=32001", "true").returncode != 0
    assert srun("--cpus-per-task=9", "true").returncode != 0


@pytest.mark.usefixtures("cluster")
def test_another_slurm_is_left_alone() -> None:
    """In a copy of the scripts with another mark, this cluster is somebody else's."""
    text = (HERE / "start.sh").read_text().replace("# written by Encore", "# written by somebody")
    refused = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "belongs to another SLURM" in refused.stderr


def test_unknown_options_are_refused() -> None:
    done = subprocess.run(["bash", str(HERE / "start.sh"), "--disks", "2"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "start.sh: unknown option --disks\n")


def test_shellcheck_finds_nothing() -> None:
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    scripts = [*HERE.glob("*.sh"), HERE.parents[1] / "envs" / "lock.sh"]
    done = subprocess.run(["shellcheck", *map(str, scripts)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout

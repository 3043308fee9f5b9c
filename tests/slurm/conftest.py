"""A real SLURM for the tests of this folder, where one can be installed."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def obstacle() -> str | None:
    """Why no SLURM can be started here; None where it must work."""
    if os.geteuid() != 0:
        return "starting SLURM needs root"
    if not (shutil.which("slurmctld", path=f"{os.environ['PATH']}:/usr/sbin") or shutil.which("apt-get")):
        return "SLURM is not installed, and neither is apt-get"
    if Path("/etc/slurm/slurm.conf").exists() and "Encore" not in Path("/etc/slurm/slurm.conf").read_text():
        return "this machine belongs to another SLURM"
    return None


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """One node of 8 CPUs, 32000 MB (as far as SLURM knows) and 2 fake GPUs; taken down whatever happens."""
    if reason := obstacle():
        pytest.skip(reason)
    try:
        started = subprocess.run(
            ["bash", str(HERE / "start.sh"), "--memory-mb", "32000"], capture_output=True, text=True, check=False
        )
        assert started.returncode == 0, started.stdout + started.stderr
        yield
    finally:
        subprocess.run(["bash", str(HERE / "stop.sh")], check=True)

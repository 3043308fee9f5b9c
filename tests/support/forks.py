"""Snakemake and programs as a shell starts them, but imported once: forks of the server of runs.

``python tests/support/forks.py SOCKET`` is that server, workflow/forkserver.py. It has also imported Snakemake, starts
Java quickly, and forks for whatever is asked, on a simulated GPU where a variable of the environment says so.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
JOB = str(REPOSITORY / "workflow/job.py")
SNAKEMAKE = str(Path(sys.executable).with_name("snakemake"))
SIMULATED_GPU = "ENCORE_SIMULATED_GPU"  # with this variable torch computes on a simulated GPU
THREADS = ("OMP_NUM", "GOTO_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM")
ONE_THREAD = {f"{name}_THREADS": "1" for name in THREADS}  # as Snakemake sets them for a job
KEPT: list[Any] = []  # to the end of a program
CPU = "cpu"  # the file with a line of CPU seconds for each fork
# Variables in which a test differs from the server, and that no import reads.
UNREAD = (b"COLUMNS", b"PYTEST", b"PYTHON", b"SLURM", b"RANK", b"WORLD_SIZE", b"LOCAL_", b"MASTER_")


@cache
def environment() -> dict[str, str]:
    """The variables with which workflow/job.py finds the server, which ends when this process does."""
    folder = Path(tempfile.mkdtemp(prefix="encore-forks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = folder / "socket"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | ONE_THREAD
    process = subprocess.Popen([sys.executable, "-P", __file__, str(address)], stdin=subprocess.PIPE, env=clean)
    atexit.register(process.kill)
    while not address.exists() and process.poll() is None:  # it ends where there is a GPU
        time.sleep(0.05)
    return {"ENCORE_FORKSERVER": str(address), **ONE_THREAD}


@cache
def python() -> str:
    """A Python whose programs are forks of the server."""
    variables = " ".join(f"{name}={value}" for name, value in environment().items())
    path = Path(environment()["ENCORE_FORKSERVER"]).with_name("python")
    path.write_text(
        f'#!/bin/sh\ncase "$1" in *.py) export {variables}; exec {sys.executable} {JOB} "$@";; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def main(address: str) -> None:
    """Be the server."""
    sys.path[:0] = [str(REPOSITORY / part) for part in ("workflow", "src", ".")]
    import forkserver  # type: ignore[import-not-found]

    from encore.retrieval import java
    from tests.support import quick_java

    java._FLAGS += quick_java.flags()
    forkserver.LEFT_OUT = ("encore.commands.__main__", "encore.retrieval.doc2query.model")
    forkserver.LATE += ["matplotlib.pyplot", "networkx", "pyarrow.parquet", "scipy.stats", "snakemake.cli"]
    forkserver.LATE += ["snakemake.profiles", "snakemake.report.html_reporter", "snakemake.storage"]
    forkserver.LATE += ["snakemake_executor_plugin_slurm"]
    forkserver.BY_THEMSELVES, forkserver.begin = set(), begin
    forkserver.UNREAD += UNREAD
    sys.path[:3] = [""]  # the place of a program's folder
    forkserver.main(address)


def begin(job: Any) -> None:
    """What is done in a fork before its program."""
    atexit.register(_note_cpu_seconds, Path(sys.orig_argv[-1]).with_name(CPU))
    if SIMULATED_GPU in os.environ:
        sys.path.append(str(REPOSITORY))
        from tests.support.simulated_gpu import simulated_gpu

        KEPT.append(gpu := simulated_gpu())
        gpu.__enter__()


def _note_cpu_seconds(path: Path) -> None:
    """Nobody waits for a fork: its CPU seconds, and those of processes that it waited for, would not be counted."""
    with path.open("a") as file:
        file.write(f"{sum(os.times()[:4])}\n")


def cpu_seconds() -> float:
    """CPU seconds of the forks that have ended."""
    noted = Path(environment()["ENCORE_FORKSERVER"]).with_name(CPU) if environment.cache_info().currsize else None
    return sum(map(float, noted.read_text().split())) if noted and noted.exists() else 0.0


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Whole runs of nano that are killed: Snakemake, the process that forks for jobs, and all jobs, at once."""

import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import Popen
from typing import NamedTuple

from tests.support.clones import Clone

PATIENCE = 60.0  # seconds until all processes of a run that was killed must have ended


class PlannedJob(NamedTuple):
    """A job of nano: its rule, its log, which its shell's command names, and the file that it writes last."""

    rule: str
    log: str
    manifest: str


def planned_jobs(clone: Clone) -> list[PlannedJob]:
    """All jobs of nano, each after those that it needs."""
    found = []
    announced = clone.nano("-n", "--forceall").succeeded()
    for rule, details in re.findall(r"^(?:local)?rule (\w+):\n((?: {4}.*\n)*)", announced, re.MULTILINE):
        if rule != "all":
            (log,) = re.findall(r"^ {4}log: (\S+\.log)", details, re.MULTILINE)
            (made,) = re.findall(r"^ {4}output: (.*)$", details, re.MULTILINE)
            found.append(PlannedJob(rule, log, re.findall(r"results/\S*manifest\.json", made)[-1]))
    return list(dict.fromkeys(found))


def kill_in(clone: Clone, jobs: list[PlannedJob], delay: float, *arguments: str) -> PlannedJob | None:
    """Start nano, and kill all of it some seconds after one of the jobs has begun.

    Returns:
        The job that was at work then and had not finished; None where each was faster, or none had to be done. A run
        ends too once all these jobs have.
    """
    process, said = clone.start_nano(*arguments), list[str]()
    threading.Thread(target=lambda: said.extend(process.stdout or ()), daemon=True).start()
    begun: dict[PlannedJob, float] = {}
    while process.poll() is None:
        commands = b"\n".join(commands_of(process))
        at_work = [job for job in jobs if job.log.encode() in commands]
        for job in at_work:
            if time.monotonic() >= begun.setdefault(job, time.monotonic()) + delay:
                end(process)
                return None if (clone.root / job.manifest).exists() else job
        if begun and not at_work and all((clone.root / job.manifest).exists() for job in jobs):
            break
        time.sleep(0.02)
    assert process.poll() in (None, 0), "".join(said)
    end(process)
    return None


def commands_of(process: "Popen[str]") -> list[bytes]:
    """The commands of all processes of a session that are at work."""
    return [command for _, command in processes_of(process)]


def processes_of(process: "Popen[str]") -> Iterator[tuple[int, bytes]]:
    """The numbers and commands of all processes of a session that are at work."""
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.getsid(int(path.name)) == process.pid:
                yield int(path.name), (path / "cmdline").read_bytes()


def end(process: "Popen[str]") -> None:
    """Kill a run, wait until the last of its processes has noticed, and take its lock away as ``--unlock`` does."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + PATIENCE
    while any(commands_of(process)):
        assert time.monotonic() < deadline, "a process of a killed run still works"
        time.sleep(0.01)


def unlock(clone: Clone) -> None:
    """What ``snakemake --unlock`` does, without planning."""
    shutil.rmtree(clone.root / ".snakemake/locks", ignore_errors=True)


def finished_files(clone: Clone) -> dict[str, str]:
    """Files under their last names, but not the plan and the root, which each run writes of what it has."""
    return {
        name: digest
        for name, digest in clone.files().items()
        if not name.startswith(("plan/", "state/", "root.json")) and ".tmp" not in name
    }

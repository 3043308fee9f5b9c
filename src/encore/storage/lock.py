"""One job at a time for one folder, on whatever node: a lock that ends with its owner, however that ends."""

import errno
import fcntl
import json
import os
import platform
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from encore.errors import EncoreError

LOCK = ".lock.tmp"
PATIENCE = 60.0  # seconds: a network file system may notice late that an owner on another node has ended


@contextmanager
def locked(folder: Path, patience: float | None = None) -> Iterator[None]:
    """Hold the lock of a folder, which is made if it is missing.

    The lock is a POSIX lock, which network file systems support; on one without, nothing is locked.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    file = _hold(path, time.monotonic() + (PATIENCE if patience is None else patience))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # before it is released: who waits for it looks whether it is still there
        file.close()


def _hold(path: Path, deadline: float) -> IO[str]:
    """The open lock file, which this process now owns."""
    while True:
        file = _opened(path, os.O_CREAT)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = _owner(file)
            file.close()
            if time.monotonic() > deadline:
                raise EncoreError(
                    f"{path.parent} is being made by {owner}; wait for it or end it, then run snakemake again"
                ) from error
            time.sleep(0.2)
            continue
        except OSError:  # a file system without locks
            return file
        with suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(file.fileno())):  # its last owner has not removed it meanwhile
                break
        file.close()
    file.truncate(0)
    job = os.environ.get("SLURM_JOB_ID")
    json.dump({"host": platform.node(), "process": os.getpid(), **({"slurm_job": job} if job else {})}, file)
    file.flush()
    return file


def _opened(path: Path, more: int = 0) -> IO[str]:
    """A lock file, which is no link, pipe or device that somebody has put in its place."""
    try:
        number = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | more, 0o666)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise
        raise EncoreError(f"{path} is no file; remove it, then repeat") from error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise EncoreError(f"{path} is no file; remove it, then repeat")
    return os.fdopen(number, "r+", encoding="utf-8")


def owners(results: Path) -> Iterator[str]:
    """Who makes which folder of results at the moment, a line each; whatever clone their run is in."""
    for path in results.rglob(LOCK):
        with suppress(FileNotFoundError, EncoreError), _opened(path) as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield f"{path.parent} is being made by {_owner(file)}"


def _owner(file: IO[str]) -> str:
    """Who holds a lock, in words."""
    file.seek(0)
    try:
        owner = json.load(file)
        process = f"process {owner['process']} on {owner['host']}"
    except (ValueError, KeyError, TypeError):
        return "another job"
    return process + (
        f" (SLURM job {owner['slurm_job']}: scancel {owner['slurm_job']})" if "slurm_job" in owner else ""
    )

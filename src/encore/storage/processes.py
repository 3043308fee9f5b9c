"""Child processes that end with their parent, and work spread over them that says in one line when one was killed."""

import ctypes
import fcntl
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from encore.errors import EncoreError

W = TypeVar("W")
R = TypeVar("R")
KILLED = "a worker process was killed, perhaps because it ran out of memory; give the job more memory or fewer threads"
_FOLDERS = "encore-run-"  # of temporary folders
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_FORK = multiprocessing.get_context("fork") if sys.platform.startswith("linux") else None  # a child knows its parent
_LIBC = ctypes.CDLL(None) if sys.platform.startswith("linux") else None
_work: Callable[[Any], Any]  # of a process of ``in_order``


def end_with_parent(parent: int | None = None) -> None:
    """Have the kernel kill this process when its parent ends, however that ends; only Linux can.

    Args:
        parent: the parent's number, if it was known before the fork: it may have ended since.
    """
    if _LIBC is None:
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def temporary_folder() -> str:
    """A new folder of this process, which removes those that killed processes of the same user have left."""
    for left in Path(tempfile.gettempdir()).glob(f"{_FOLDERS}*"):
        with suppress(OSError):  # one that is held, another user's, or no folder
            if left.stat().st_uid == os.getuid() and (held := _held(left)):
                shutil.rmtree(left, ignore_errors=True)
                os.close(held)
    while True:
        folder = tempfile.mkdtemp(prefix=_FOLDERS)
        with suppress(OSError):
            _held(Path(folder))  # to the end of this process
        if os.path.isdir(folder):  # noqa: PTH112  # no other has taken it for left before it was held
            return folder


def _held(folder: Path) -> int:
    """A folder's number, locked; an error where another process holds it."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise
    return number


def in_order(work: Callable[[W], R], parts: Iterable[W], processes: int, ahead: int = 4) -> Iterator[R]:
    """``map(work, parts)`` over processes: results in the order of the parts, and no more of them held than needed.

    The first error ends it, and parts not begun are given up. What ``work`` refers to is shared with forks, not sent to
    them. The processes outlive neither the iteration nor this process.

    Args:
        ahead: parts handed out for each process.
    """
    waiting: deque[Future[R]] = deque()
    pool = ProcessPoolExecutor(processes, mp_context=_FORK, initializer=_begin, initargs=(os.getpid(), work))
    try:
        for part in parts:
            waiting.append(pool.submit(_do, part))
            if len(waiting) >= ahead * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise EncoreError(KILLED) from error
    finally:
        pool.shutdown(cancel_futures=True)


def shared_in_order(work: Callable[[W], R], parts: Iterable[W], processes: int, ahead: int = 4) -> Iterator[R]:
    """``in_order`` for a local function: by this process where there is one, or where processes are not forked."""
    if processes <= 1 or _FORK is None:
        return map(work, parts)
    return in_order(work, parts, processes, ahead)


def _begin(parent: int, work: Callable[[Any], Any]) -> None:
    global _work
    end_with_parent(parent)
    _work = work


def _do(part: Any) -> Any:
    return _work(part)

"""The end of every command-line program of Encore: one line for each error, and in a job's log its traceback.

Programs import this module before all others (see ``isort`` in pyproject.toml): a Ctrl-C while they still import torch
or pandas, for seconds, then ends in one line too.
"""

import argparse
import errno
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from traceback import extract_tb, print_exception
from types import FrameType, TracebackType
from typing import Any, NoReturn

from encore.errors import EncoreError
from encore.storage import environment
from encore.storage.machine import LACKS, is_out_of_memory

INTERRUPTED = "error: interrupted; the same command continues from here"
OLDEST_PYTHON = (3, 11)
LIBRARY = Path(__file__).parents[1]
PLATFORMS = ("linux", "darwin")
_interruptions: list[int] = []  # the signal that has ended this program, once it came
USERS_TO_FIX = {*LACKS, errno.ENOTDIR} - {errno.EIO, errno.ESTALE}  # a disk may answer when a job is repeated


def run(main: Callable[[], int | None], *, traceback: bool = True) -> NoReturn:
    """Run a program's ``main`` and exit; an error prints ``error: …``, one line, and exits with 1.

    Args:
        traceback: print that of an unexpected error before its line, for the log of a job.
    """
    if problem := _unsupported(sys.version_info[:2], sys.platform):
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # logs grow while the job runs
    signal.signal(signal.SIGINT, _interrupt_once)
    try:
        code = main() or 0
    except BrokenPipeError:  # `encore ... | head`: who reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is flushed at the end
        code = 0
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        code = 130
    except Exception as error:
        if _interruptions:
            print(INTERRUPTED, file=sys.stderr)  # a library that was being imported made another error of it
            code = 130
        else:
            if not (expected := _in_words(error)) and traceback:
                print_exception(error)
            print(f"error: {expected or _with_place(error)}", file=sys.stderr)
            code = 1
    if code:
        _leave_together()
    sys.exit(code)


def _in_words(error: Exception) -> str:
    """What a user has to do about an error; empty for one that nobody expected."""
    if isinstance(error, EncoreError):
        return str(error)
    if isinstance(error, OSError) and error.errno in USERS_TO_FIX:
        return f"{error.filename or 'a file'}: {error.strerror}; fix that, then repeat"
    if isinstance(error, MemoryError):
        return "out of memory; give the program more, then repeat"
    if is_out_of_memory(error):
        return "out of memory on the GPU; take a larger one that nothing else uses"
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if name and name != "encore":
        fix = "`make` installs the locked packages in a clone, `pip install 'encore-ir[cpu]'` elsewhere"
        return f"the Python package {name!r} is missing in {sys.prefix}; {fix}"
    return ""


def _with_place(error: Exception) -> str:
    """The type and the message of an error, with the innermost line of the library, or else of all, that it left."""
    _, *frames = extract_tb(error.__traceback__)  # without ``run``
    frame = [frame for frame in frames if LIBRARY in Path(frame.filename).parents or frame is frames[0]][-1]
    path = Path(frame.filename)
    place = path.relative_to(LIBRARY.parent) if path.is_relative_to(LIBRARY) else path
    return f"{type(error).__name__}: {' '.join(str(error).split())} ({place}:{frame.lineno})"


def _unsupported(python: tuple[int, int], platform: str) -> str | None:
    """What keeps Encore from running at all, with what to install; None where it runs."""
    if python < OLDEST_PYTHON:
        oldest, found = (".".join(map(str, version)) for version in (OLDEST_PYTHON, python))
        return f"this is Python {found}, and Encore needs {oldest} or newer; install it and run `make PYTHON=…`"
    if platform not in PLATFORMS:
        return f"Encore runs on Linux and macOS, and this is {platform}; on Windows install it in WSL (wsl --install)"
    return None


def _leave_together() -> None:
    """End at once where several processes train together, so that torchrun ends the others.

    They wait for this one, and Python's own end would wait for them, for hours and before anything is printed.
    """
    if environment.text(environment.SIZE) not in ("", "1"):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    """Ctrl-C in a terminal reaches a job twice, from there and from Snakemake; the second must not cut the message."""
    signal.signal(number, signal.SIG_IGN)
    _interruptions.append(number)
    raise KeyboardInterrupt


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an exception that comes before ``run`` is reached: an interruption is one line there as well."""
    if issubclass(kind, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print(INTERRUPTED, file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
    _leave_together()


sys.excepthook = _uncaught


def json_object(text: str) -> dict[str, Any]:
    """A JSON object on the command line."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise EncoreError(f"--spec is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise EncoreError("--spec must be a JSON object")
    return value


def positive(text: str) -> int:
    """The type of flags that are a count."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return value


def artifact(text: str) -> Path:
    """The type of flags that name an artifact: its folder, or the manifest in it."""
    path = Path(text)
    return path.parent if path.name == "manifest.json" else path

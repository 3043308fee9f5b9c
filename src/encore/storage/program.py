"""The end of every command-line program of Encore: one line for a user's mistake, a traceback for ours.

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
from types import FrameType, TracebackType
from typing import Any, NoReturn

from encore.errors import EncoreError
from encore.storage import environment
from encore.storage.machine import is_out_of_memory

INTERRUPTED = "error: interrupted; the same command continues from here"
OLDEST_PYTHON = (3, 11)
PLATFORMS = ("linux", "darwin")
_interruptions: list[int] = []  # the signal that has ended this program, once it came
USERS_TO_FIX = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ENOMEM}


def run(main: Callable[[], int | None]) -> NoReturn:
    """Run a program's ``main`` and exit; an EncoreError prints ``error: …`` and exits with 1."""
    if problem := _unsupported(sys.version_info[:2], sys.platform):
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(1)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # logs grow while the job runs
    signal.signal(signal.SIGINT, _interrupt_once)
    try:
        code = main() or 0
    except EncoreError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 1
    except BrokenPipeError:  # `encore ... | head`: who reads has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is flushed at the end
        code = 0
    except OSError as error:
        if error.errno not in USERS_TO_FIX:
            raise
        print(f"error: {error.filename or 'a file'}: {error.strerror}; fix that, then repeat", file=sys.stderr)
        code = 1
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name == "encore" or not name:
            raise
        fix = "`make` installs the locked packages in a clone, `pip install 'encore-ir[cpu]'` elsewhere"
        print(f"error: the Python package {name!r} is missing in {sys.prefix}; {fix}", file=sys.stderr)
        code = 1
    except MemoryError:
        print("error: out of memory; give the program more, then repeat", file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        code = 130
    except Exception as error:
        if _interruptions:
            print(INTERRUPTED, file=sys.stderr)  # a library that was being imported made another error of it
            code = 130
        elif is_out_of_memory(error):
            print("error: out of memory on the GPU; take a larger one that nothing else uses", file=sys.stderr)
            code = 1
        else:
            raise
    if code:
        _leave_together()
    sys.exit(code)


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

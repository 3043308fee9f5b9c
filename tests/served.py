"""Snakemake as a shell starts it, but imported once for many commands: each is a fork of one waiting process."""

import atexit
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO

SERVER = """
import gc, json, os, sys
from snakemake.cli import main
import snakemake.profiles, snakemake.report.html_reporter, snakemake.storage, snakemake_executor_plugin_slurm
import tokenizers
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        for stream, place in ((0, os.devnull), (1, asked["output"]), (2, asked["output"])):
            os.dup2(os.open(place, os.O_RDONLY if stream == 0 else os.O_WRONLY | os.O_APPEND), stream)
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.argv = ["snakemake", *asked["arguments"]]
        sys.exit(main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def server() -> "subprocess.Popen[str]":
    """The waiting process; it ends when this one does."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [sys.executable, "-P", "-c", SERVER]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean)
    atexit.register(process.kill)
    return process


def snakemake(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float
) -> tuple[int, str]:
    """The exit status of a command, and both of its streams."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as output:
        asked = {"arguments": arguments, "folder": str(folder), "environment": dict(environment), "output": output.name}
        waiting = server()
        assert waiting.stdin
        assert waiting.stdout
        waiting.stdin.write(json.dumps(asked) + "\n")
        waiting.stdin.flush()
        code = _line(waiting.stdout, timeout)
        text = output.read()
        assert code, f"no end after {timeout} seconds:\n{text}"
        return int(code), text


def _line(stream: IO[str], timeout: float) -> str:
    with selectors.DefaultSelector() as ready:
        ready.register(stream, selectors.EVENT_READ)
        return stream.readline() if ready.select(timeout) else ""

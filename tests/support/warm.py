"""The warm process that ``served.py`` starts: it imports what programs need, then forks for each of them.

A clone whose library is not the repository's, to the size and time of each file, imports its own after the fork. The
process ends when its standard input does.
"""

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

# Of Snakemake and of the workflow's programs; Transformers is left to the two that need it, for seconds.
IMPORTED = (
    *("faiss", "ir_measures", "matplotlib.pyplot", "networkx", "numpy", "pandas", "pyarrow.parquet", "pydantic"),
    *("safetensors.torch", "scipy.sparse", "scipy.stats", "tokenizers", "torch", "yaml"),
    *("snakemake.cli", "snakemake.profiles", "snakemake.report.html_reporter", "snakemake.storage"),
    "snakemake_executor_plugin_slurm",
)
REPOSITORY = Path(__file__).resolve().parents[2]
OWN_IMPORTS = "encore.retrieval.doc2query.model"  # the one that imports Transformers
SIMULATED_GPU = "ENCORE_SIMULATED_GPU"  # a variable of the environment: with it torch computes on a simulated GPU
LENGTH = 8  # bytes that say how long a request is
STREAMS = 3


def serve(address: str, python: str, *flags_of_java: str) -> None:
    """Answer requests at a socket until standard input ends; ``python`` is what Snakemake's jobs are started with."""
    sys.path.insert(0, str(REPOSITORY / "src"))
    from encore.storage.processes import wake_when_a_child_ends

    wake, _ = wake_when_a_child_ends()
    running: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        warm_up(flags_of_java)
        del sys.path[0]
        known = library(REPOSITORY)
        gc.collect()
        gc.freeze()
        print("ready", flush=True)
        while True:
            ready = select.select([sys.stdin, listener, wake, *running.values()], [], [])[0]
            if sys.stdin in ready:
                return
            if wake in ready:
                os.read(wake, 4096)
                ended(running)
            if listener in ready:
                client = listener.accept()[0]
                try:
                    request, streams = received(client)
                except (EOFError, OSError, ValueError):  # it was killed before it had asked
                    client.close()
                    continue
                if child := os.fork():
                    running[child] = client
                    for stream in streams:
                        os.close(stream)
                else:
                    become(request, streams, python, known)
            for child in [child for child, client in running.items() if client in ready]:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)  # nobody waits for it any more
                running.pop(child).close()


def warm_up(flags_of_java: tuple[str, ...]) -> None:
    """Import all that a program may, but for Transformers; and start Java with these flags besides its own."""
    for name in IMPORTED:
        importlib.import_module(name)
    for found in pkgutil.walk_packages([str(REPOSITORY / "src/encore")], "encore."):
        if found.name != OWN_IMPORTS and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    java: Any = sys.modules["encore.retrieval.java"]
    java._FLAGS += flags_of_java


def library(root: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file of a clone's library and programs."""
    paths = [path for part in ("src/encore", "workflow/scripts") for path in (root / part).rglob("*.*")]
    found = {str(path.relative_to(root)): path.stat() for path in paths if path.parent.name != "__pycache__"}
    return {name: (about.st_size, about.st_mtime_ns) for name, about in found.items()}


def received(client: socket.socket) -> tuple[tuple[list[str], str, dict[str, str]], list[int]]:
    """A command with its folder and environment, and its three streams."""
    head, streams, _, _ = socket.recv_fds(client, LENGTH, STREAMS)
    if len(streams) < STREAMS:
        raise EOFError
    left, parts = int.from_bytes(head, "little"), []
    while left:
        parts.append(client.recv(left))
        left -= len(parts[-1])
        if not parts[-1]:
            raise EOFError
    return marshal.loads(b"".join(parts)), streams


def ended(running: dict[int, socket.socket]) -> None:
    """Tell those who wait for children that have ended."""
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        if child in running:
            with running.pop(child) as client:
                code = os.waitstatus_to_exitcode(status)
                client.sendall(code.to_bytes(4, "little", signed=True))


def become(
    request: tuple[list[str], str, dict[str, str]], streams: list[int], python: str, known: dict[str, tuple[int, int]]
) -> None:
    """Be the process that was asked for, to its end."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(STREAMS, max(streams) + 64)
    arguments, folder, environment = request
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    if library(Path(folder)) != known:
        for name in [name for name in sys.modules if name.partition(".")[0] == "encore"]:
            del sys.modules[name]
    code, gpu = 0, contextlib.ExitStack()
    if SIMULATED_GPU in environment:
        sys.path.append(str(REPOSITORY))
        gpu.enter_context(importlib.import_module("tests.support.simulated_gpu").simulated_gpu())
    try:
        if arguments[0] == "snakemake":
            sys.executable, sys.excepthook = python, sys.__excepthook__
            importlib.import_module("snakemake.cli").main()
        else:
            given = filter(None, environment.get("PYTHONPATH", "").split(":"))
            sys.path[:0] = [str(Path(arguments[0]).resolve().parent), *given]
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as asked:
        if isinstance(asked.code, str):
            print(asked.code, file=sys.stderr)
        code = asked.code if isinstance(asked.code, int) else int(asked.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(*sys.argv[1:])

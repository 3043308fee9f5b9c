"""A process that has imported what jobs import, and becomes each of them by a fork.

    python workflow/forkserver/server.py SOCKET

Snakemake starts it before the first job of a run on one machine (workflow/rules/run.smk). It ends when its standard
input does: when Snakemake ends, in whatever way. Its jobs then end too, and a job ends when its client does.
"""

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import pkgutil
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from encore.storage import manifest
from encore.storage.processes import end_with_parent, wake_when_a_child_ends

LIBRARY = Path(manifest.__file__).parents[1]
PRODUCTS = ("commands", "plan", "products")  # packages for a few jobs a run
SLOW = "encore.retrieval.doc2query.model"  # imports Transformers, for two rules
LATE = ("ir_measures", "pandas")  # imported where they are used
AS_TYPED = 1000  # the answer to a job that has to start by itself
OF_ITS_OWN = ("_", "SHLVL", "PWD", "OLDPWD", "TMPDIR", "TMP", "TEMP", "TEMPDIR")  # variables that no import reads


class Job(NamedTuple):
    """What a client sends: the program with its arguments, its folder, umask and environment, and its three streams."""

    arguments: list[str]
    folder: str
    umask: int
    environment: dict[bytes, bytes]
    streams: list[int]


def main(address: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for the jobs
    known, job = code(), None
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            warm_up()
            listener.bind(address)
        except OSError as error:
            if not select.select([sys.stdin], [], [], 0)[0]:  # else Snakemake has ended, and removed the folder
                print(f"warning: each job imports by itself, for seconds ({error}); set TMPDIR to a folder with room")
        else:
            job = serve(listener, known)
    if job:
        become(job)
    else:
        shutil.rmtree(Path(address).parent, ignore_errors=True)


def code() -> list[tuple[str, int, int]]:
    """Name, size and time of every file of the library."""
    found = []
    for path in (path for kind in ("*.py", "*.yaml") for path in LIBRARY.rglob(kind)):
        with contextlib.suppress(FileNotFoundError):  # an editor's
            found.append((str(path), path.stat().st_size, path.stat().st_mtime_ns))
    return sorted(found)


def warm_up() -> None:
    """Import what jobs do, look up what all of them note, and keep Python's collector from touching, and so copying,
    the memory that jobs share.
    """
    found = (module.name for module in pkgutil.walk_packages([str(LIBRARY)], "encore."))
    for name in (*LATE, *found):
        if name.partition("encore.")[2].split(".")[0] not in PRODUCTS and name != SLOW:
            with contextlib.suppress(ImportError):  # the job that needs it says so
                importlib.import_module(name)
    manifest.look_up_for_forks()
    gc.collect()
    gc.freeze()


def serve(listener: socket.socket, known: list[tuple[str, int, int]]) -> Job | None:
    """Answer clients until standard input ends, then give None; in each fork give the job that it is to become."""
    if sys.modules["torch"].cuda.is_available():
        return None  # CUDA survives no fork
    server, (wake, woken) = os.getpid(), wake_when_a_child_ends()
    running: dict[int, socket.socket] = {}
    listener.listen(64)
    while True:
        ready = select.select([sys.stdin, listener, wake, *running.values()], [], [])[0]
        if sys.stdin in ready:
            return None
        if wake in ready:
            os.read(wake, 4096)
            tell_ends(running)
        for child in [child for child, client in running.items() if client in ready]:
            pass_on(child, running)
        if listener in ready:
            client = listener.accept()[0]
            job = received(client)
            child = fork(job, known)
            if child == 0:
                end_with_parent(server)
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for end in (wake, woken):
                    os.close(end)
                for other in (client, *running.values()):
                    other.close()
                return job
            if child is None:
                answer(client, AS_TYPED)
            else:
                running[child] = client
            for stream in job.streams if job else ():
                os.close(stream)


def received(client: socket.socket) -> Job | None:
    """What a client sends: the length of all, with the streams, then all; None where it was killed before the end."""
    streams: list[int] = []
    try:
        head, streams, _, _ = socket.recv_fds(client, 8, 3)
        sent, length = b"", int.from_bytes(head, "little")
        while len(sent) < length and (part := client.recv(length - len(sent))):  # what follows is a signal
            sent += part
        return Job(*marshal.loads(sent), streams)
    except (EOFError, OSError, TypeError, ValueError):
        for stream in streams:
            os.close(stream)
        return None


def fork(job: Job | None, known: list[tuple[str, int, int]]) -> int | None:
    """The number of a job's process, 0 in there; None where it would import other things than are imported here.

    That is where code was edited since, or where a variable has another value.
    """
    if job is None or code() != known:
        return None
    ours, theirs = (
        {name: value for name, value in variables.items() if os.fsdecode(name) not in OF_ITS_OWN}
        for variables in (dict(os.environb), job.environment)
    )
    try:
        return os.fork() if ours == theirs else None
    except OSError:  # no memory for one more
        return None


def pass_on(child: int, running: dict[int, socket.socket]) -> None:
    """Give a job the signal that its client has got; end it where the client is gone."""
    try:
        number = running[child].recv(1)
    except OSError:
        number = b""
    os.kill(child, number[0] if number else signal.SIGKILL)
    if not number:
        running.pop(child).close()


def tell_ends(running: dict[int, socket.socket]) -> None:
    """Tell the clients of jobs that have ended how they did."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if client := running.pop(ended[0], None):
                answer(client, os.waitstatus_to_exitcode(ended[1]))


def answer(client: socket.socket, code: int) -> None:
    """Tell a client how its job has ended, negative for a signal."""
    with client, contextlib.suppress(OSError):
        client.sendall(code.to_bytes(4, "little", signed=True))


def become(job: Job) -> None:
    """Be a job as if Python had just started for it; its end is this process's."""
    for number, stream in enumerate(job.streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(job.folder)
    os.umask(job.umask)
    os.environb.clear()
    os.environb.update(job.environment)
    tempfile.tempdir = None  # which was looked up in the environment
    sys.modules["numpy"].random.seed()
    sys.modules["torch"].seed()
    sys.argv = job.arguments
    program, main = Path(sys.argv[0]).absolute(), ModuleType("__main__")
    sys.path[0], sys.modules["__main__"], main.__file__ = str(program.resolve().parent), main, str(program)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where who started Snakemake ignores it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        exec(compile(program.read_bytes(), program, "exec"), main.__dict__)
    except SystemExit as ended:
        if ended.code:
            raise  # what failed ends as Python does
    leave()


def leave() -> None:
    """End a job that is done, as ``multiprocessing`` ends its forks.

    Python's own end would take apart all that the job shares with the server, and so copy it first: 0.3 s of each job.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The process whose forks are the jobs of a run on one machine: it has imported what jobs import.

    python workflow/forkserver.py SOCKET

Snakemake starts it before the first job (rules/forkserver.smk), and job.py asks it for a fork. It ends when its
standard input does: when Snakemake ends, in whatever way. Its jobs then end too, and a job ends when its client does.
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
from encore.storage.processes import end_with_parent

LIBRARY = Path(manifest.__file__).parents[1]
LEFT_OUT = ("encore.commands", "encore.products", "encore.retrieval.doc2query.model")  # for a few jobs of a run
LATE = ["ir_measures", "pandas"]  # imported where they are used
BY_THEMSELVES = {"lucene_index", "lucene_search", "measure_latency"}  # what these start, or their time, is measured
ALONE = 1000  # the answer to a program that has to start by itself, as in job.py
UNREAD = (b"ENCORE_", b"OLDPWD", b"PATH", b"PWD", b"PYTHONPATH", b"SHLVL", b"TEMP", b"TMP", b"_")  # by imports


class Job(NamedTuple):
    """What a client sends: the program with its arguments, its folder, umask and environment, and its three streams."""

    arguments: list[str]
    folder: str
    umask: int
    environment: dict[bytes, bytes]
    streams: list[int]


def main(address: str) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # Ctrl-C is for the jobs
    known, job = code(LIBRARY), None
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            warm_up()
            listener.bind(address)
        except OSError as error:
            if not select.select([sys.stdin], [], [], 0)[0]:  # else Snakemake has ended, and removed the folder
                print(
                    f"warning: each job imports by itself, for seconds ({error}); set TMPDIR to a short path with room"
                )
        else:
            job = serve(listener)
    if job:
        become(job, known)
    else:
        shutil.rmtree(Path(address).parent, ignore_errors=True)


def code(library: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file of a library."""
    found = {path: path.stat() for kind in ("*.py", "*.yaml") for path in library.rglob(kind) if path.exists()}
    return {str(path.relative_to(library)): (about.st_size, about.st_mtime_ns) for path, about in found.items()}


def warm_up() -> None:
    """Import what jobs do, look up what all note, and keep Python's collector from touching shared memory."""
    found = (module.name for module in pkgutil.walk_packages([str(LIBRARY)], "encore."))
    for name in (*LATE, *(name for name in found if not name.startswith(LEFT_OUT))):
        with contextlib.suppress(ImportError):  # the job that needs it says so
            importlib.import_module(name)
    manifest.look_up_for_forks()
    gc.collect()
    gc.freeze()


def serve(listener: socket.socket) -> Job | None:
    """Answer clients until standard input ends, then give None; in each fork give the job that it is to become."""
    if sys.modules["torch"].cuda.is_available():
        return None  # CUDA survives no fork
    server = os.getpid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who look after jobs
    listener.listen(64)
    while sys.stdin not in select.select([sys.stdin, listener], [], [])[0]:
        client = listener.accept()[0]
        child = fork()
        if child == 0:
            end_with_parent(server)
            return look_after(client)
        if child is None:
            answer(client, ALONE)
        client.close()
    return None


def look_after(client: socket.socket) -> Job:
    """Fork for a client's job, pass signals on, say how the job ended, and end; in the fork give the job."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    job, parent = received(client), os.getpid()
    child = fork() if is_alike(job) else None
    if child == 0:
        end_with_parent(parent)
        client.close()
        return job
    code = ALONE
    if child is not None:
        for stream in job.streams:
            os.close(stream)
        threading.Thread(target=pass_on, args=(client, child), daemon=True).start()
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # it keeps its number until this process ends
        code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    answer(client, code)
    os._exit(0)


def fork() -> int | None:
    """The number of a new process, 0 in there; None where there is no memory for one more."""
    try:
        return os.fork()
    except OSError:
        return None


def answer(client: socket.socket, code: int) -> None:
    """Tell a client how its job has ended, negative for a signal."""
    with contextlib.suppress(OSError):  # it is gone
        client.sendall(code.to_bytes(4, "little", signed=True))


def received(client: socket.socket) -> Job:
    """What a client sends: the length of all, with the streams, then all; the end where it was killed before that."""
    head, streams, _, _ = socket.recv_fds(client, 8, 3)
    sent, length = b"", int.from_bytes(head, "little")
    while len(sent) < length and (part := client.recv(length - len(sent))):  # what follows is a signal
        sent += part
    if not length or len(sent) < length:
        os._exit(0)
    return Job(*marshal.loads(sent), streams)


def pass_on(client: socket.socket, child: int) -> None:
    """Give a job the signals that its client gets; end it where the client is gone."""
    with contextlib.suppress(OSError):
        while number := client.recv(1):
            os.kill(child, number[0])
    os.kill(child, signal.SIGKILL)


def is_alike(job: Job) -> bool:
    """Whether a fork is as a new process: not where a variable has another value, by which imports may differ."""
    ours, theirs = (
        {name: value for name, value in variables.items() if not name.startswith(UNREAD)}
        for variables in (os.environb, job.environment)
    )
    return ours == theirs and BY_THEMSELVES.isdisjoint(job.arguments[1:2])


def become(job: Job, known: dict[str, tuple[int, int]]) -> None:
    """Be a job as if Python had just started for it; its end is this process's.

    Args:
        known: the files of the library that is imported here.
    """
    for number, stream in enumerate(job.streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(job.folder)
    os.umask(job.umask)
    ours = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environb.clear()
    os.environb.update(job.environment)
    theirs = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv, tempfile.tempdir = job.arguments, None  # which was looked up in the environment
    program, main = Path(sys.argv[0]).absolute(), ModuleType("__main__")
    sys.path[:] = [str(program.resolve().parent), *theirs, *(path for path in sys.path[1:] if path not in ours)]
    sys.modules["__main__"], main.__file__ = main, str(program)
    library = next((found for path in theirs if (found := Path(path, "encore")).is_dir()), LIBRARY)
    if code(library) != known:  # it was edited since
        for name in [name for name in sys.modules if name.partition(".")[0] == "encore"]:
            del sys.modules[name]
    sys.modules["numpy"].random.seed()
    sys.modules["torch"].seed()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where who started Snakemake ignores it
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    begin(job)
    try:
        exec(compile(program.read_bytes(), program, "exec"), main.__dict__)
    except SystemExit as ended:
        if ended.code:
            raise  # what failed ends as Python does
    leave()


def begin(job: Job) -> None:
    """What else is done in a fork before its program; nothing, but for tests."""


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

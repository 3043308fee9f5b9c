"""Run a program of the workflow: as a fork of a process that has imported what jobs import, if there is one.

    python workflow/job.py PROGRAM ARGUMENT ...

``ENCORE_FORKSERVER`` is the socket of that process (forkserver.py). Without it, and where a fork would not be the same,
this becomes ``python PROGRAM ARGUMENT ...``. It imports little, to start at once.
"""

import marshal
import os
import select
import signal
import socket
import sys

SERVER = "ENCORE_FORKSERVER"
ALONE = 1000  # the server's answer for a program that has to start by itself


def hand_over(server: socket.socket, arguments: list[str]) -> None:
    """Send the server all that makes a process."""
    umask = os.umask(0)
    os.umask(umask)
    job = marshal.dumps((arguments, os.getcwd(), umask, dict(os.environb)))  # noqa: PTH109  # pathlib is slow
    socket.send_fds(server, [len(job).to_bytes(8, "little")], range(3))
    server.sendall(job)


def answer_of(server: socket.socket) -> bytes:
    """How the job has ended; nothing where the server is gone.

    Python itself sends the number of SIGINT to the server the moment it comes: a handler would wait until ``recv``
    returned, if the signal came just before it was called.
    """
    server.setblocking(False)
    signal.set_wakeup_fd(server.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        select.select([server], [], [])
        return server.recv(4)
    except OSError:
        return b""
    finally:
        signal.set_wakeup_fd(-1)


def end_as_fork(address: str, arguments: list[str]) -> None:
    """End as the server's fork does; returns only where there is none."""
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(address)
        hand_over(server, arguments)
    except OSError:
        return
    answer = answer_of(server)
    code = int.from_bytes(answer, "little", signed=True)
    if code == ALONE:
        return
    if not answer:
        sys.exit("error: the process that starts jobs was killed, perhaps out of memory; repeat the command")
    if code < 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if SERVER in os.environ:
        end_as_fork(os.environ[SERVER], sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])

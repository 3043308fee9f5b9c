"""What ``python`` is to the jobs of a run on one machine: it has the server fork for a program, and ends as that does.

    python -IS workflow/forkserver/client.py SOCKET PROGRAM ARGUMENT ...

Where there is no server (not yet, or none for this job) it becomes Python itself. It imports little, to start at once.
"""

import _signal
import _socket
import marshal
import os
import select
import sys

AS_TYPED = 1000  # as in server.py
BY_THEMSELVES = (
    "lucene_index.py",
    "lucene_search.py",
    "measure_latency.py",
)  # what they start, or their time, is measured


def hand_over(server: "_socket.socket", arguments: list[str]) -> None:
    """Send the server all that makes a process."""
    umask = os.umask(0)
    os.umask(umask)
    job = marshal.dumps((arguments, os.getcwd(), umask, dict(os.environb)))  # noqa: PTH109  # pathlib is slow
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
    server.sendmsg([len(job).to_bytes(8, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    server.sendall(job)


def pass_on_interrupts(server: "_socket.socket") -> None:
    """Have Python send the number of SIGINT to the server the moment it comes.

    A handler in Python would wait until ``recv`` returned, if the signal came just before it was called.
    """
    server.setblocking(False)
    _signal.set_wakeup_fd(server.fileno(), warn_on_full_buffer=False)
    _signal.signal(_signal.SIGINT, lambda *_: None)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {_signal.SIGINT})


def main(address: str, arguments: list[str]) -> None:
    """Run a program; returns only where it has to start by itself."""
    server = _socket.socket(_socket.AF_UNIX)

    try:
        server.connect(address)
        hand_over(server, arguments)
    except OSError:
        return
    pass_on_interrupts(server)
    try:
        select.select([server], [], [])
        answer = server.recv(4)
    except OSError:
        answer = b""
    _signal.set_wakeup_fd(-1)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    code = int.from_bytes(answer, "little", signed=True)
    if code == AS_TYPED:
        return
    if not answer:
        sys.exit("error: the process that starts jobs was killed, perhaps out of memory; repeat the command")
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


def as_typed(arguments: list[str]) -> None:
    """Become Python with these arguments."""
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {_signal.SIGINT})
    os.execv(sys.executable, [sys.executable, *arguments])


if __name__ == "__main__":
    _signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGINT})
    address, *arguments = sys.argv[1:]
    if arguments and arguments[0].endswith(".py") and not arguments[0].endswith(BY_THEMSELVES):
        main(address, arguments)
    as_typed(arguments)

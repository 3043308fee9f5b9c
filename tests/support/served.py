"""Snakemake and the programs of its jobs as a shell starts them, but imported once: forks of one warm process."""

import atexit
import marshal
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.support import quick_java

# A program's file is handed to the warm process, with folder, environment and streams; all else (-c, -m) is Python's.
CLIENT = """#!{python} -IS
import os, sys
if len(sys.argv) < 2 or not sys.argv[1].endswith(".py"):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
import _socket, marshal
asked = marshal.dumps((sys.argv[1:], os.getcwd(), dict(os.environ)))
server = _socket.socket(_socket.AF_UNIX)
server.connect({address!r})
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
server.sendmsg([len(asked).to_bytes(8, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(asked)
answer = server.recv(4)
code = int.from_bytes(answer, "little", signed=True) if answer else 70
os.kill(os.getpid(), -code) if code < 0 else os._exit(code)
"""


@cache
def server() -> "subprocess.Popen[bytes]":
    """The warm process; it ends when this one does."""
    folder().joinpath("python").write_text(CLIENT.format(python=sys.executable, address=str(folder() / "socket")))
    folder().joinpath("python").chmod(0o755)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [sys.executable, "-P", str(Path(__file__).with_name("warm.py"))]
    command += [str(folder() / name) for name in ("socket", "python")]
    command += quick_java.flags()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean)
    atexit.register(process.kill)
    assert process.stdout
    assert process.stdout.readline(), "the warm process did not start"
    return process


@cache
def folder() -> Path:
    """Of the warm process's socket, and of the ``python`` that hands programs to it."""
    made = Path(tempfile.mkdtemp(prefix="encore-warm-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def python() -> str:
    """A Python whose programs are forks of the warm process."""
    server()
    return str(folder() / "python")


def snakemake(arguments: Sequence[str], root: Path, environment: Mapping[str, str], timeout: float) -> tuple[int, str]:
    """The exit status of a command, and both of its streams."""
    server()
    asked = marshal.dumps((["snakemake", *arguments], str(root), dict(environment)))
    with (
        tempfile.NamedTemporaryFile("r", encoding="utf-8") as output,
        Path(os.devnull).open() as nothing,
        Path(output.name).open("a") as written,
        socket.socket(socket.AF_UNIX) as client,
    ):
        client.settimeout(timeout)
        client.connect(str(folder() / "socket"))
        streams = [nothing.fileno(), written.fileno(), written.fileno()]
        socket.send_fds(client, [len(asked).to_bytes(8, "little")], streams)
        client.sendall(asked)
        try:
            answer = client.recv(4)
        except TimeoutError:
            answer = b""
        text = output.read()
    assert answer, f"no end after {timeout} seconds:\n{text}"
    return int.from_bytes(answer, "little", signed=True), text

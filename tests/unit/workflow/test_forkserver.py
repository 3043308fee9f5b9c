"""Jobs that are forks of one process: each is as if Python had started it, and ends with those who wait for it."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import ends, is_running

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has what the server needs"),
    pytest.mark.slow,  # every nano run is made of such jobs
]

WHAT_IT_HAS = """
import sys
loaded = "pandas" in sys.modules
from encore.storage import program
import json, locale, os, random, signal, warnings
import numpy, torch
umask = os.umask(0)
print(json.dumps({
    "argv": sys.argv, "folder": os.getcwd(), "umask": umask, "path": sys.path, "name": __name__, "file": __file__,
    "environment": {name: value for name, value in os.environ.items() if name != "_"},
    "main": sys.modules["__main__"].__dict__["WHAT"], "read": sys.stdin.read(),
    "locale": locale.setlocale(locale.LC_ALL),
    "threads": torch.get_num_threads(), "group": os.getpgrp(), "session": os.getsid(0),
    "warnings": [str(each) for each in warnings.filters], "mask": [int(each) for each in signal.pthread_sigmask(0, [])],
    "handlers": [str(signal.getsignal(number)).split(" at ")[0] for number in range(1, 32)],
    "open": [os.readlink(each) for number in range(3, 64) if os.path.islink(each := f"/proc/self/fd/{number}")],
}), flush=True)
print([loaded, random.random(), numpy.random.rand(), torch.rand(1).item()], file=sys.stderr)
WHAT = "never printed"
"""
LOADED = "import sys\nprint('pandas' in sys.modules, flush=True)\n"
ENDINGS = {
    "well": "print('done')",
    "with a thread": "import threading; threading.Timer(0.2, print, ['done']).start()",
    "with last words": "import atexit; atexit.register(print, 'last words'); print('not flushed', end=' ')",
    "by its own word": "import sys; print('done'); sys.exit()",
    "status": "import sys; sys.exit(3)",
    "message": "import sys; sys.exit('what, where, how to fix')",
    "error": "import atexit; atexit.register(print, 'last words'); 1 / 0",
    "at once": "import os; os._exit(7)",
    "segfault": "import os; os.kill(os.getpid(), 11)",
    "out of memory": "import os; os.kill(os.getpid(), 9)",
}
RECORDS = """
from pathlib import Path
from encore.storage import manifest
with manifest.record(Path("made"), stage="evaluate", spec={}, inputs=[]):
    pass
run = manifest.read_run(Path("made"))
print(run["forked"], run["commit"], run["packages"]["torch"])
"""
WAITS = """
from encore.storage import program
import os, time
def main():
    print(os.getpid(), flush=True)
    while True:  # Python would notice a signal that came just before a sleep when that is over
        time.sleep(0.1)
program.run(main)
"""


class Server:
    """A server of a copy of the repository, and the two ways in which a job starts there."""

    def __init__(self, root: Path) -> None:
        self.root, self.address = root, root / "run" / "socket"
        for folder in ("src/encore", "workflow"):
            shutil.copytree(ROOT / folder, root / folder)
        self.address.parent.mkdir()
        (root / "programs").mkdir()
        self.environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root / "src"), "LC_ALL": "C.UTF-8"}
        self.environment |= {"OMP_NUM_THREADS": "1", "ENCORE_RUN": "a run"}
        command = [sys.executable, str(root / "workflow/forkserver.py"), str(self.address)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, env=self.environment)
        while not self.address.exists() and self.process.poll() is None:
            time.sleep(0.05)

    def client(self, *arguments: str, address: Path | None = None, **options: Any) -> "subprocess.Popen[str]":
        settings: dict[str, Any] = {"env": self.environment, "cwd": self.root / "programs", "text": True, **options}
        settings["env"] = settings["env"] | {"ENCORE_FORKSERVER": str(address or self.address)}
        return subprocess.Popen([sys.executable, str(self.root / "workflow/job.py"), *arguments], **settings)

    def forked(self, text: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        """How a program ends that the server forks for."""
        return self._end(self.client(self.write(text), "a b", "--c", **PIPES | options))

    def as_typed(self, text: str, **options: Any) -> "subprocess.CompletedProcess[str]":
        """How it ends without a server."""
        return self._end(self.client(self.write(text), "a b", "--c", address=self.root / "none", **PIPES | options))

    def write(self, text: str) -> str:
        (self.root / "programs/program.py").write_text(text)
        return "program.py"

    def waiting(self, **options: Any) -> "tuple[subprocess.Popen[str], int]":
        """A client and its job, which waits."""
        client = self.client(self.write(WAITS), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        assert client.stdout
        job = int(client.stdout.readline())
        assert job != client.pid, "it is a fork of the server"
        return client, job

    def _end(self, client: "subprocess.Popen[str]") -> "subprocess.CompletedProcess[str]":
        output, errors = client.communicate("typed in")
        return subprocess.CompletedProcess(client.args, client.returncode, output, errors)


PIPES: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = Server(tmp_path_factory.mktemp("with a blank"))
    yield found
    found.process.kill()
    found.process.wait()


def facts(done: "subprocess.CompletedProcess[str]") -> tuple[dict[str, Any], list[Any]]:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), json.loads(done.stderr.replace("True", "true").replace("False", "false"))


def test_a_job_has_all_that_a_process_of_its_own_has(server: Server) -> None:
    text = WHAT_IT_HAS.replace("import sys", "WHAT = 'its own'\nimport sys", 1)
    options: dict[str, Any] = {"preexec_fn": lambda: os.umask(0o027), "start_new_session": False}
    typed, (typed_loaded, *_) = facts(server.as_typed(text, **options))
    forked, (loaded, *first) = facts(server.forked(text, **options))
    assert (loaded, typed_loaded) == (True, False), "one of them is a fork"
    assert forked["argv"] == ["program.py", "a b", "--c"]
    assert forked["umask"] == 0o027
    assert forked["read"] == "typed in"
    assert {*typed.pop("warnings")} <= {*forked.pop("warnings")}, "and those of what else is imported"
    assert typed["environment"].pop("ENCORE_FORKSERVER") != forked["environment"].pop("ENCORE_FORKSERVER")
    assert forked == typed
    _, (_, *second) = facts(server.forked(text, **options))
    assert not {*first} & {*second}, "two jobs draw other numbers"


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_job_ends_as_a_process_of_its_own(server: Server, ending: str) -> None:
    typed, forked = (start(LOADED + ENDINGS[ending]) for start in (server.as_typed, server.forked))
    assert (forked.returncode, forked.stdout) == (typed.returncode, typed.stdout.replace("False", "True"))
    assert forked.stderr.splitlines()[-1:] == typed.stderr.splitlines()[-1:]


@pytest.mark.parametrize("reason", ["no such folder", "path too long", "Snakemake has ended"])
def test_a_server_without_room_for_its_socket_is_one_line_and_leaves_nothing(reason: str, tmp_path: Path) -> None:
    """Snakemake takes the folder away when it ends, perhaps before the server has imported all: no line is due then."""
    place = tmp_path / ("a" * 120 if reason == "path too long" else "none")
    if reason == "path too long":
        place.mkdir()
    command = [sys.executable, str(ROOT / "workflow/forkserver.py"), str(place / "socket")]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as server:
        assert server.stdin
        assert server.stdout
        if reason == "Snakemake has ended":
            server.stdin.close()
        lines = server.stdout.read().splitlines()
    assert server.returncode == 0
    assert not place.exists()
    if reason == "Snakemake has ended":
        assert lines == []
        return
    (line,) = lines
    assert line.startswith("warning: each job imports by itself, for seconds (")
    assert line.endswith("); set TMPDIR to a short path with room")


@pytest.mark.parametrize("left", ["a socket of nobody", "a file", "a folder"])
def test_what_an_earlier_server_left_stops_no_job(server: Server, left: str, tmp_path: Path) -> None:
    """Nobody answers at a socket whose server was killed; the job starts as it is typed."""
    address = tmp_path / "socket"
    if left == "a socket of nobody":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(address))
    elif left == "a file":
        address.write_text("left")
    else:
        address.mkdir()
    client = server.client(server.write("print('done')"), address=address, **PIPES)
    assert client.communicate("")[0] == "done\n"
    assert client.returncode == 0


def test_a_job_that_is_done_does_not_take_apart_what_it_shares_with_the_server(server: Server) -> None:
    text = "class Kept:\n    def __del__(self):\n        print('taken apart')\nkept = Kept()\nprint('done')"
    assert server.as_typed(text).stdout == "done\ntaken apart\n"
    assert server.forked(text).stdout == "done\n"


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "HF_HOME", "LC_ALL"])
def test_a_job_with_another_variable_that_imports_may_read_starts_by_itself(server: Server, name: str) -> None:
    assert server.forked(LOADED, env=server.environment | {"ENCORE_RUN": "another run"}).stdout == "True\n"
    assert server.forked(LOADED, env=server.environment | {name: "C"}).stdout == "False\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_job_ends_with_its_client(server: Server, number: int) -> None:
    client, job = server.waiting()
    client.send_signal(number)
    assert client.wait(timeout=60) == -number
    assert ends(job)


@pytest.mark.parametrize("send", [os.kill, os.killpg], ids=["to the client", "to all"])
def test_ctrl_c_ends_a_job_in_one_line(server: Server, send: Any) -> None:
    client, job = server.waiting(start_new_session=True)
    send(client.pid, signal.SIGINT)
    assert client.communicate(timeout=60)[0] == "error: interrupted; the same command continues from here\n"
    assert client.returncode == 130
    assert not is_running(job)


def test_ctrl_c_before_the_job_has_begun_is_not_lost(server: Server) -> None:
    server.process.send_signal(signal.SIGSTOP)
    client = server.client(server.write(WAITS), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while not has_socket(client.pid) or is_blocked(client.pid, signal.SIGINT):
        time.sleep(0.01)
    client.send_signal(signal.SIGINT)
    server.process.send_signal(signal.SIGCONT)
    assert (
        client.communicate(timeout=60)[0].splitlines()[-1] == "error: interrupted; the same command continues from here"
    )
    assert client.returncode in (130, -signal.SIGINT)


def has_socket(process: int) -> bool:
    """Whether a process has opened one."""
    with contextlib.suppress(FileNotFoundError):  # a file that is being closed
        return any("socket:" in str(each.readlink()) for each in Path(f"/proc/{process}/fd").iterdir())
    return False


def is_blocked(process: int, number: int) -> bool:
    """Whether a process holds a signal back."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return bool(int(status["SigBlk"], 16) >> (number - 1) & 1)


@pytest.mark.parametrize(("stage", "is_fork"), [("encode", True), ("lucene_search", False)])
def test_a_stage_whose_own_process_is_measured_starts_by_itself(server: Server, stage: str, is_fork: bool) -> None:
    assert server.client(server.write(LOADED), stage, **PIPES).communicate()[0] == f"{is_fork}\n"


def test_what_is_edited_in_a_run_holds_for_the_jobs_after(server: Server) -> None:
    path = server.root / "src/encore/errors.py"
    text = LOADED + "from encore import errors\nprint(hasattr(errors, 'ADDED'))"
    before, about = path.read_text(), path.stat()
    path.write_text(f"{before}\nADDED = 1\n")
    assert server.forked(text).stdout == "True\nTrue\n"
    path.write_text(before)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert server.forked(text).stdout == "True\nFalse\n"


@pytest.mark.parametrize("is_killed", [False, True], ids=["with Snakemake", "for want of memory"])
def test_jobs_end_with_the_server(tmp_path: Path, is_killed: bool) -> None:
    server = Server(tmp_path / "copy")
    client, job = server.waiting()
    assert server.process.stdin
    server.process.kill() if is_killed else server.process.stdin.close()
    assert client.communicate(timeout=60)[0].startswith("error: the process that starts jobs was killed")
    assert client.returncode == 1
    assert ends(job)
    assert server.process.wait(timeout=60) == (-signal.SIGKILL if is_killed else 0)
    assert is_killed or not server.address.parent.exists()
    assert server.forked("print('by itself')").stdout == "by itself\n"


def test_a_job_notes_whether_it_is_a_fork(server: Server) -> None:
    forked, typed = server.forked(RECORDS), server.as_typed(RECORDS)
    (is_fork, *noted), (is_typed, *found) = forked.stdout.split(), typed.stdout.split()
    assert (is_fork, is_typed) == ("True", "False"), forked.stderr
    assert noted == found, "commit and versions, which its parent looked up"

"""No child outlives its parent, and a pool says in one line when one of its processes was killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.storage import processes
from encore.storage.processes import in_order, shared_in_order
from tests.support.processes import ends, is_running

POOL = """
import os, time
from encore.storage.processes import in_order
numbers = in_order(lambda _: os.getpid(), range(2), 1)
print(next(numbers), flush=True)
time.sleep(600)
"""
JAVA = """
import tempfile
from encore.retrieval import java
with tempfile.TemporaryFile("w+") as log, java._started(["sleep", "600"], log) as process:
    print(process.pid, flush=True)
    process.wait()
"""


def _number(_: int) -> int:
    return os.getpid()


def _killed(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells children of their parent's end")
@pytest.mark.parametrize("program", [POOL, JAVA], ids=["pool", "java"])
def test_a_child_ends_when_its_parent_is_killed(program: str) -> None:
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert is_running(child)
    parent.kill()
    parent.wait()
    assert ends(child)


def test_a_killed_worker_is_one_line() -> None:
    with pytest.raises(EncoreError, match="a worker process was killed, perhaps because it ran out of memory"):
        list(in_order(_killed, range(2), 1))


def test_without_forks_shared_work_is_done_in_this_process_and_others_are_spawned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS, on which a started process gets its work by the name of a function."""
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_FORK", None)
        assert list(shared_in_order(lambda _: os.getpid(), range(3), 2)) == [os.getpid()] * 3
        patch.setattr(multiprocessing.context._default_context, "_actual_context", multiprocessing.get_context("spawn"))
        assert list(in_order(abs, [-1, -2], 2)) == [1, 2]
        assert os.getpid() not in list(in_order(_number, range(2), 1))
    if sys.platform.startswith("linux"):
        assert os.getpid() not in list(shared_in_order(lambda _: os.getpid(), range(3), 2))


def test_the_folder_of_a_killed_process_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run that was killed left some in the temporary folder, for ever."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "from encore.storage.processes import temporary_folder\nprint(temporary_folder(), flush=True)\ninput()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command, environment = [sys.executable, "-c", code], os.environ | {"TMPDIR": str(tmp_path)}
    killed, at_work = (subprocess.Popen(command, env=environment, **pipes) for _ in range(2))
    folders = [Path(job.stdout.readline().strip()) for job in (killed, at_work)]
    (folders[0] / "draft").touch()
    killed.kill()
    killed.communicate()
    (tmp_path / "encore-run-link").symlink_to(tmp_path)
    own = Path(processes.temporary_folder())
    assert {path.name for path in tmp_path.iterdir()} == {folders[1].name, own.name, "encore-run-link"}
    at_work.kill()
    at_work.communicate()

"""No child outlives its parent, and a pool says in one line when one of its processes was killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from encore.errors import EncoreError
from encore.storage import processes
from encore.storage.processes import in_background, in_order, process_pool, shared_in_order
from tests.support.processes import ends, is_running

POOL = """
import os, time
from encore.storage.processes import in_background, process_pool
with process_pool(1) as pool:
    print(pool.submit(os.getpid).result(), flush=True)
    time.sleep(600)
"""
JAVA = """
import tempfile
from encore.retrieval import java
with tempfile.TemporaryFile("w+") as log, java._started(["sleep", "600"], log) as process:
    print(process.pid, flush=True)
    process.wait()
"""


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
    killed = pytest.raises(EncoreError, match="a worker process was killed, perhaps because it ran out of memory")
    with killed, process_pool(1) as pool:
        pool.submit(os.kill, pool.submit(os.getpid).result(), signal.SIGKILL).result()


def test_what_is_done_beside_comes_back_from_another_process_or_from_this_one() -> None:
    with in_background(os.getpid, 1) as result:
        assert result() == os.getpid()
    with in_background(os.getpid, 2) as result:
        assert (result() == os.getpid()) is (not sys.platform.startswith("linux"))


def test_without_forks_shared_work_is_done_in_this_process_and_others_are_spawned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS, on which a started process gets its work by the name of a function."""
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_FORK", None)
        assert list(shared_in_order(lambda _: os.getpid(), range(3), 2)) == [os.getpid()] * 3
        with in_background(os.getpid, 2) as result:
            assert result() == os.getpid()
        patch.setattr(multiprocessing.context._default_context, "_actual_context", multiprocessing.get_context("spawn"))
        assert list(in_order(abs, [-1, -2], 2)) == [1, 2]
        with process_pool(1) as pool:
            assert pool.submit(os.getpid).result() != os.getpid()
    if sys.platform.startswith("linux"):
        assert os.getpid() not in list(shared_in_order(lambda _: os.getpid(), range(3), 2))


def refuse() -> None:
    raise EncoreError("nothing there; name another")


@pytest.mark.parametrize("number", [1, 2])
def test_an_error_in_the_background_is_raised_where_its_result_is_requested(number: int) -> None:
    with in_background(refuse, number) as result, pytest.raises(EncoreError, match="nothing there; name another"):
        result()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux forks")
def test_what_is_done_beside_ends_with_the_block(tmp_path: Path) -> None:
    """An error here need not wait for it, and a kill of it is one line."""

    def sleep() -> None:
        (tmp_path / "number").write_text(str(os.getpid()))
        time.sleep(600)

    def number() -> int:
        while not (tmp_path / "number").is_file() or not (tmp_path / "number").read_text():
            time.sleep(0.02)
        return int((tmp_path / "number").read_text())

    with pytest.raises(KeyError), in_background(sleep, 2):
        {}[child := number()]
    assert ends(child)
    (tmp_path / "number").unlink()
    with in_background(sleep, 2) as result:
        os.kill(number(), signal.SIGKILL)
        with pytest.raises(EncoreError, match="a worker process was killed, perhaps because it ran out of memory"):
            result()

"""Two jobs for one folder exclude each other, and a lock ends with its owner."""

import fcntl
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from encore.errors import EncoreError
from encore.storage import lock, manifest
from encore.storage.lock import LOCK, locked

HOLD = """
import sys, time
from pathlib import Path
from encore.storage.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def without_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits a minute for a lock that another process holds."""
    monkeypatch.setattr(lock, "PATIENCE", 0)


@pytest.fixture
def owner(tmp_path: Path) -> subprocess.Popen[str]:
    """Another process, which holds the lock of a folder and says that it is a job of SLURM."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "SLURM_JOB_ID": "77"})
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process  # type: ignore[misc]
    process.kill()
    process.wait()


def test_a_folder_that_another_job_makes_is_refused_by_naming_it(tmp_path: Path, owner: subprocess.Popen[str]) -> None:
    message = rf"{tmp_path} is being made by process {owner.pid} on \S+ \(SLURM job 77: scancel 77\); wait"
    with pytest.raises(EncoreError, match=message), locked(tmp_path):
        raise AssertionError("both hold it")


def test_a_lock_ends_with_its_owner(tmp_path: Path, owner: subprocess.Popen[str]) -> None:
    owner.kill()
    owner.wait()
    assert (tmp_path / LOCK).is_file()
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["process"] == os.getpid()
    assert not (tmp_path / LOCK).exists()


def test_who_waits_holds_it_once_it_is_free(tmp_path: Path, owner: subprocess.Popen[str]) -> None:
    waiting = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    owner.kill()
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "held\n"
    with pytest.raises(EncoreError, match=f"process {waiting.pid} on"), locked(tmp_path):
        raise AssertionError("both hold it")
    waiting.kill()
    waiting.wait()


@pytest.mark.parametrize("third", [False, True], ids=["removed", "made again by a third job"])
def test_a_lock_that_its_last_owner_removes_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, third: bool
) -> None:
    """The file that was waited for then locks nothing: whoever comes next makes another."""
    original, calls = fcntl.lockf, itertools.count(1)

    def lockf(*arguments: Any) -> None:
        if next(calls) == 1:
            (tmp_path / LOCK).unlink()
            if third:
                (tmp_path / LOCK).touch()
        original(*arguments)

    monkeypatch.setattr(fcntl, "lockf", lockf)
    with locked(tmp_path):
        assert json.loads((tmp_path / LOCK).read_text())["process"] == os.getpid()
    assert next(calls) == 3


def test_an_artifact_is_made_under_its_lock_and_without_a_trace_of_it(tmp_path: Path) -> None:
    with manifest.record(tmp_path / "a", stage="tokens", spec={}, inputs=[]):
        assert (tmp_path / "a" / LOCK).is_file()
        (tmp_path / "a" / "file").write_text("made")
    assert manifest.read_manifest(tmp_path / "a")["outputs"].keys() == {"file"}
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["file", "manifest.json", "run.json"]


@pytest.mark.parametrize("kind", ["a link", "a pipe"])
def test_a_link_or_a_pipe_in_the_locks_place_is_refused_and_not_written_to(tmp_path: Path, kind: str) -> None:
    """Results from elsewhere had a link to another file of the user's there, which a job emptied."""
    (tmp_path / "thesis").write_text("mine")
    results = tmp_path / "results"
    results.mkdir()
    (results / LOCK).symlink_to(tmp_path / "thesis") if kind == "a link" else os.mkfifo(results / LOCK)
    with pytest.raises(EncoreError, match=f"{LOCK} is no file; remove it, then repeat"), locked(results):
        raise AssertionError("it is held")
    assert [*manifest.added(results, [])] == [results / LOCK], "an audit sees it"
    (results / LOCK).unlink()
    (results / "half.tmp").symlink_to(tmp_path / "thesis")
    with manifest.record(results, stage="tokens", spec={}, inputs=[]):
        pass
    assert not os.path.lexists(results / "half.tmp")
    assert (tmp_path / "thesis").read_text() == "mine"

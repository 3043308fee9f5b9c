"""Several runs, clones and users with one folder of results, some of them stopped; then the bytes are equal."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jobs import Job, folder_of, outputs
from trials import Count
from whole_runs import commands_of

from encore.storage import lock, manifest
from tests.support import forks
from tests.support.clones import BIN, NANO, Clone, environment
from tests.support.other_user import NOBODY, as_nobody

TABLE = "results/tables/table1.csv"


def test_a_second_run_in_one_clone_is_refused_and_the_first_goes_on(
    nano: Clone, same: Callable[[], bool], count: Count
) -> None:
    (nano.root / "results" / folder_of(nano, "models/tiny+control") / manifest.MANIFEST).unlink()
    first = nano.start_nano()
    assert first.stdout is not None
    assert any(re.match(r"(?:local)?rule (?:pretrain|finetune):", line) for line in first.stdout)
    second = nano.nano_as_typed()
    said, _ = first.communicate()
    assert (first.returncode, second.code) == (0, 1), said + second.output
    assert "Directory cannot be locked" in second.output
    assert "Traceback" not in second.output
    assert same()
    count("surroundings", "a second run in one clone", 1, 1)


def named(pid: int, folder: Path) -> bool:
    """True once a process is named as the owner in the folder's lock."""
    path = folder / lock.LOCK
    return path.is_file() and str(pid) in path.read_text()


def test_a_job_that_is_stopped_keeps_its_folder_and_goes_on(
    nano: Clone, same: Callable[[], bool], count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another job for the same folder waits, then fails with the name of the first."""
    job = Job(nano, folder_of(nano, "negatives/bm25-"))
    impatient = "import sys; from encore.storage import lock; lock.PATIENCE = 0.1; import runpy; del sys.argv[0]; "
    impatient += "runpy.run_path(sys.argv[0], run_name='__main__')"
    environ = environment() | {"PYTHONPATH": str(nano.root / "src")}
    settings = {"cwd": nano.root, "env": environ, "text": True}
    first = subprocess.Popen([sys.executable, *job.command], start_new_session=True, **settings)  # type: ignore[call-overload]
    while not named(first.pid, job.folder) and first.poll() is None:
        time.sleep(0.001)
    os.killpg(first.pid, signal.SIGSTOP)
    stopped = first.poll() is None and not (job.folder / manifest.MANIFEST).exists()
    second = (
        subprocess.run([sys.executable, "-c", impatient, *job.command], capture_output=True, check=False, **settings)
        if stopped
        else None
    )
    os.killpg(first.pid, signal.SIGCONT)
    assert first.wait() == 0
    assert second is not None
    assert f"is being made by process {first.pid} on" in second.stderr, second.stderr
    assert {path.name: path.read_bytes() for path in outputs(job.folder)} == {
        path.name: path.read_bytes() for path in outputs(job.before)
    }
    shutil.rmtree(job.before)
    assert same()
    count("surroundings", "a job that is stopped", 1, 1)


def test_a_run_that_is_stopped_goes_on(nano: Clone, same: Callable[[], bool], count: Count) -> None:
    """Snakemake, the process that forks and all jobs are stopped for seconds, which no limit of time counts."""
    shutil.rmtree(nano.root / "results/scores")
    (nano.root / TABLE).unlink()
    run = nano.start_nano(TABLE)
    assert run.stdout is not None
    assert any(re.match(r"(?:local)?rule evaluate:", line) for line in run.stdout)
    while not any(b"results/logs/evaluate/" in command for command in commands_of(run)):
        assert run.poll() is None
    os.killpg(run.pid, signal.SIGSTOP)
    before = nano.files()
    time.sleep(3)
    assert nano.files() == before
    assert not (nano.root / TABLE).exists()
    os.killpg(run.pid, signal.SIGCONT)
    said, _ = run.communicate()
    assert run.returncode == 0, said
    assert same()
    count("surroundings", "a run that is stopped", 1, 1)


def test_two_clones_may_share_one_folder_of_results(
    nano: Clone, same: Callable[[], bool], tmp_path: Path, count: Count
) -> None:
    """Both at once. One may wait for a folder and make it again: each makes it once at most, whatever the other does.

    What one reads while the other replaces it is reported in one line, and the same command continues.
    """
    other = Clone.fresh(tmp_path / "another clone")
    shutil.rmtree(other.root / "results")
    (other.root / "results").symlink_to(nano.root / "results")
    ran = tmp_path / "ran"
    for clone in (nano, other):
        said = f"{clone.root.name} {{sys.argv[sys.argv.index('--output') + 1]}}\\n"
        note = f"sys.argv[1] == 'evaluate' and open({str(ran)!r}, 'a').write(f\"{said}\")"
        clone.replace("workflow/scripts/make.py", "import argparse\n", f"import argparse\nimport sys\n\n{note}\n")
    gone = [folder_of(nano, kind) for kind in ("scores/bm25-", "scores/tiny+control")]
    for folder in gone:
        shutil.rmtree(nano.root / "results" / folder)
    (nano.root / TABLE).unlink()
    forks.environment()  # one server for both
    with ThreadPoolExecutor() as pool:
        done = [*pool.map(lambda clone: clone.nano(TABLE), (nano, other))]
    assert 0 in [each.code for each in done], done[0].output + done[1].output
    for each in done:
        assert each.code == 0 or "Traceback" not in each.output, each.output
    made = Counter(ran.read_text().splitlines())
    assert {line.rsplit(" ", 1)[1] for line in made} == {f"results/{folder}/{manifest.MANIFEST}" for folder in gone}
    assert set(made.values()) == {1}, "once by each clone at most"
    for clone in (nano, other):
        clone.nano(TABLE).succeeded()
    assert same()
    count("surroundings", "two clones with one folder of results", 1, 1)


@pytest.fixture
def given_away(finished: Clone) -> Iterator[Clone]:
    """A finished run that was moved, copied whole, and given to nobody."""
    clone = Clone(Path("/tmp") / f"encore given away {os.getpid()}")
    shutil.copytree(finished.root, clone.root, symlinks=True)
    if as_nobody(clone, "true").code != 0:
        shutil.rmtree(clone.root)
        pytest.skip("becoming another user needs root")
    for path in (clone.root, *clone.root.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    yield clone
    shutil.rmtree(clone.root)


def test_another_user_goes_on_with_a_clone_that_was_moved(finished: Clone, given_away: Clone, count: Count) -> None:
    shutil.rmtree(given_away.root / "results/scores")
    for path in (given_away.root / "results/tables").iterdir():
        path.unlink()
    as_nobody(given_away, str(BIN / "snakemake"), *NANO).succeeded()
    made = given_away.root / "results" / folder_of(given_away, "scores/bm25-")
    assert made.stat().st_uid == NOBODY
    assert given_away.files() == finished.files()
    count("surroundings", "another user", 1, 1)

"""What happens around a run: odd paths, a stray environment, files that vanish or are shared; then equal bytes."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from jobs import Job, outputs
from trials import Count

from encore.storage import lock, manifest
from encore.storage.files import remembered_contents, sha256
from tests.support.clones import BIN, NANO, Clone, environment

TABLE = "results/tables/table1.csv"
PATHS = {
    "blanks": "a clone of  mine",
    "quotes": "a'b\"c",
    "umlauts": "Übung é ß",
    "signs of a shell": "$(id) `x`; & # *",
    "per cent and backslash": "%s\\n",
}
STRAY = {"RANK": "x", "WORLD_SIZE": "abc", "LOCAL_RANK": "7", "ENCORE_KEEP_VECTORS": "maybe", "ENCORE_RUN": "{x}"}
BARE = {"LC_ALL": "POSIX", "LANG": "C", "TZ": "Pacific/Chatham"}
BARE |= {"PYTHONHASHSEED": "7", "PYTHONOPTIMIZE": "2", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
ENVIRONMENTS = {"stray variables": STRAY, "a bare system": BARE}


@pytest.fixture
def same(finished: Clone, nano: Clone) -> Iterator[Callable[[], bool]]:
    """Whether all manifests and the table have the bytes of the undisturbed run; asked once more at the end."""
    expected = finished.manifests(), finished.table()

    def is_same() -> bool:
        return (nano.manifests(), nano.table()) == expected

    yield is_same
    assert is_same()


def folder_of(clone: Clone, kind: str) -> str:
    """The first artifact of a kind, such as ``models/tiny+control``, below results."""
    (found, *_) = sorted((clone.root / "results").glob(f"{kind}*/**/{manifest.MANIFEST}"))
    return str(found.parent.relative_to(clone.root / "results"))


@pytest.mark.parametrize("kind", PATHS)
def test_a_clone_that_was_moved_goes_on_wherever_it_lies(
    nano: Clone, kind: str, same: Callable[[], bool], count: Count
) -> None:
    before = nano.root
    nano.root = before.rename(before.parent / PATHS[kind])
    try:
        (nano.root / TABLE).unlink()
        nano.nano(TABLE).succeeded()
        assert same()
    finally:
        nano.root = nano.root.rename(before)
    count("surroundings", f"a path with {kind}", 1, 1)


@pytest.mark.parametrize("name", ["a {x} b", "a{", "}"])
def test_a_path_with_braces_is_refused_in_one_line(
    nano: Clone, name: str, same: Callable[[], bool], count: Count
) -> None:
    before = nano.root
    nano.root = before.rename(before.parent / name)
    try:
        said = nano.nano("-n").error()
    finally:
        nano.root = nano.root.rename(before)
    assert said.startswith("error: Snakemake takes braces in a path for names: move /")
    assert same()
    count("surroundings", "a path with braces is refused", 1, 1)


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_whatever_the_environment_says_changes_nothing(
    nano: Clone, kind: str, same: Callable[[], bool], count: Count, tmp_path: Path
) -> None:
    """Umask and standard input too."""
    folder = folder_of(nano, "models/tiny+control")
    weights = (nano.root / "results" / folder / "model.safetensors").read_bytes()
    shutil.rmtree(nano.root / "results" / folder)
    command = [str(BIN / "snakemake"), f"results/{folder}/{manifest.MANIFEST}", *NANO]
    nowhere = str(tmp_path / "nowhere")
    surroundings = ENVIRONMENTS[kind] | ({"HOME": nowhere, "TMPDIR": nowhere} if kind == "a bare system" else {})
    nano.run("sh", "-c", 'umask 077; exec "$@" <&-', "sh", *command, env=surroundings).succeeded()
    assert (nano.root / "results" / folder / "model.safetensors").read_bytes() == weights
    assert same()
    count("surroundings", kind, 1, 1)


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


def test_a_clock_that_was_set_back_loses_nothing(nano: Clone, same: Callable[[], bool], count: Count) -> None:
    """What a job reads is then newer than what it makes, which Snakemake takes away."""
    (nano.root / TABLE).unlink()
    read = nano.root / "results" / folder_of(nano, "scores/bm25-") / manifest.MANIFEST
    times = read.stat()
    os.utime(read, (times.st_atime, time.time() + 400 * 86_400))
    done = nano.nano(TABLE)
    assert done.code == 1
    assert "clock" in done.output
    os.utime(read, (times.st_atime, times.st_mtime))
    nano.nano(TABLE).succeeded()
    assert same()
    count("surroundings", "a clock that was set back", 1, 1)


def test_results_that_cannot_be_written_are_refused_and_go_on_once_they_can(
    nano: Clone, same: Callable[[], bool], count: Count
) -> None:
    """As somebody else, or as a root without the right to write all the same."""
    (nano.root / TABLE).unlink()
    results = nano.root / "results"
    folders = [results, *(path for path in results.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    lesser = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    try:
        said = nano.run(*lesser, str(BIN / "snakemake"), TABLE, *NANO).error()
    finally:
        for path in folders:
            path.chmod(0o755)
    assert said == "error: you cannot write into results; work in a clone of your own, or let its owner run this"
    nano.nano(TABLE).succeeded()
    assert same()
    count("surroundings", "results that cannot be written", 1, 1)


@pytest.mark.parametrize("change", ["vanishes", "is cut short"])
def test_a_file_that_changes_between_planning_and_job_is_one_line(
    nano: Clone, change: str, same: Callable[[], bool], count: Count
) -> None:
    """The scores of a table; the job was planned with them, and made again they are the same."""
    job = Job(nano, folder_of(nano, "scores/bm25-"))
    read = Path(job.command[job.command.index("--run") + 1]).parent
    path = sorted(path for path in (nano.root / read).rglob("*") if path.name not in ("run.json", manifest.MANIFEST))[
        -1
    ]
    kept = path.rename(nano.root / "kept")
    if change == "is cut short":
        path.write_bytes(kept.read_bytes()[:-100])
    said = job.finish()
    kept.replace(path)
    assert said.startswith(f"error: {path.relative_to(nano.root)} ")
    assert said.count("\n") == 1
    assert job.finish() == ""
    shutil.rmtree(job.before)
    assert same()
    count("surroundings", f"a file that {change} before a job", 1, 1)


def test_a_parquet_file_that_was_cut_short_is_found_pruned_and_made_again(
    nano: Clone, same: Callable[[], bool], count: Count
) -> None:
    scores = nano.root / "results" / folder_of(nano, "scores/bm25-") / "scores.parquet"
    content = scores.read_bytes()
    scores.unlink()
    scores.write_bytes(content[: len(content) // 2])
    (nano.root / TABLE).unlink()
    assert f"scores.parquet has {len(content) // 2} bytes" in nano.nano(TABLE).output
    nano.encore("audit", "--prune", "--yes", "--config", NANO[-1]).succeeded()
    nano.nano().succeeded()
    assert scores.read_bytes() == content
    assert same()
    count("surroundings", "parquet cut short", 1, 1)


def named(pid: int, folder: Path) -> bool:
    """True once a process has said in the folder's lock that it is its owner."""
    path = folder / lock.LOCK
    return path.is_file() and str(pid) in path.read_text()


def test_a_job_that_is_stopped_keeps_its_folder_and_goes_on(
    nano: Clone, same: Callable[[], bool], count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wants the same folder meanwhile waits, then is told who has it."""
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


def test_a_large_file_that_was_edited_in_the_middle_is_seen(
    tmp_path: Path, count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above 64 MiB by its time of change; below, every byte counts whatever the time says."""
    monkeypatch.chdir(tmp_path)
    path, held = tmp_path / "corpus.jsonl", 0
    for size in (70_000_000, 60_000_000):
        seen = []
        for change in (b"", b"edited"):
            with path.open("r+b" if change else "wb") as file:
                file.truncate(size)
                file.seek(size // 2)
                file.write(change)
            seen += [remembered_contents({"corpus": path})["corpus"]]
            assert remembered_contents({"corpus": path})["corpus"] == seen[-1] == sha256(path)
        held += len(set(seen)) == 2
    assert held == 2
    count("surroundings", "a large file that grew", 1, 1)


def test_two_clones_may_share_one_folder_of_results(
    nano: Clone, same: Callable[[], bool], tmp_path: Path, count: Count
) -> None:
    """Both at once: each folder is made by one of them; what is read while it is replaced is one line, and goes on."""
    other = Clone.fresh(tmp_path / "another clone")
    shutil.rmtree(other.root / "results")
    (other.root / "results").symlink_to(nano.root / "results")
    for kind in ("scores/bm25-", "scores/tiny+control"):
        shutil.rmtree(nano.root / "results" / folder_of(nano, kind))
    (nano.root / TABLE).unlink()
    with ThreadPoolExecutor() as pool:
        done = [*pool.map(lambda clone: clone.nano(TABLE), (nano, other))]
    assert 0 in [each.code for each in done], done[0].output + done[1].output
    for each in done:
        assert each.code == 0 or "Traceback" not in each.output, each.output
    for clone in (nano, other):
        clone.nano(TABLE).succeeded()
    assert same()
    count("surroundings", "two clones with one folder of results", 1, 1)

"""What happens around a run: odd paths, a stray environment, no room for temporary files, a clock; then equal bytes."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jobs import folder_of
from trials import Count

from encore.storage import manifest
from tests.support.clones import BIN, NANO, Clone

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


@pytest.mark.everything
def test_a_run_begins_and_ends_in_a_path_with_all_of_these(finished: Clone, tmp_path: Path, count: Count) -> None:
    """From raw texts, as it is typed: Java and the process that starts jobs too."""
    clone = Clone.fresh(tmp_path / " ".join(PATHS.values()))
    clone.nano_as_typed().succeeded()
    assert clone.files() == finished.files()
    count("surroundings", "a whole run in a path with all of these", 1, 1)


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
    elsewhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": nowhere, "TMPDIR": nowhere}  # as docs/cluster.md says
    surroundings = ENVIRONMENTS[kind] | (elsewhere if kind == "a bare system" else {})
    nano.run("sh", "-c", 'umask 077; exec "$@" <&-', "sh", *command, env=surroundings).succeeded()
    assert (nano.root / "results" / folder / "model.safetensors").read_bytes() == weights
    assert same()
    count("surroundings", kind, 1, 1)


@pytest.fixture
def small(nano: Clone, tmp_path: Path) -> Iterator[Path]:
    """A folder for two files of 4 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    if nano.run("mount", "-t", "tmpfs", "-o", "size=8k,nr_inodes=3", "tmpfs", str(folder)).code != 0:
        pytest.skip("mounting a small disk needs root")
    yield folder
    nano.run("umount", "--lazy", str(folder)).succeeded()


@pytest.mark.parametrize("files", [2, 1])
def test_a_full_folder_for_temporary_files_is_skipped_or_reported_in_one_line(
    nano: Clone, small: Path, files: int, same: Callable[[], bool], count: Count
) -> None:
    """Python takes another folder where it cannot write a first, small file; with room for that alone it does not."""
    for number in range(files):
        (small / str(number)).write_bytes(bytes(4096))
    (nano.root / TABLE).unlink()
    done = nano.run(str(BIN / "snakemake"), TABLE, *NANO, env={"TMPDIR": str(small)})
    if files == 2:
        done.succeeded()
    else:
        assert "No space left on device; set TMPDIR to a folder with free space, then repeat" in done.error()
        nano.nano(TABLE).succeeded()
    assert same()
    count("surroundings", "a full folder for temporary files", 1, 1)


@pytest.mark.everything
def test_a_path_too_long_for_the_socket_of_forks_is_one_line(
    nano: Clone, tmp_path: Path, same: Callable[[], bool], count: Count
) -> None:
    """A scheduler's TMPDIR may be longer than the 107 bytes of a socket's path; each job then starts by itself."""
    place = tmp_path / ("of a job " * 12)
    place.mkdir()
    for kind in ("scores", "tables", "figures"):
        shutil.rmtree(nano.root / "results" / kind)
    said = nano.run(str(BIN / "snakemake"), *NANO, env={"TMPDIR": str(place)}).succeeded()
    assert said.count("warning: each job imports by itself, for seconds (AF_UNIX path too long)") == 1
    assert "Traceback" not in said
    assert [*place.glob("encore-*")] == []
    assert same()
    count("surroundings", "a path too long for the socket of forks", 1, 1)


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

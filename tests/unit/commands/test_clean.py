"""Removing what can be made again: said first, nothing else, and not while a run is at work."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import inside

FILES = {
    "tables/table1.csv": 10,
    "claims.csv": 10,
    "models/tiny-00000001/model.safetensors": 2_000_000,
    "indexes/tiny-00000001/000-of-001/index": 3_000_000,
    "logs/encode/a.log": 10,
}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, size in FILES.items():
        path = tmp_path / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
    return tmp_path / "results"


def left(results: Path) -> set[str]:
    return {str(path.relative_to(results)) for path in results.rglob("*") if path.is_file()}


def test_nothing_goes_before_it_is_said(results: Path) -> None:
    done = inside.encore("clean", "--keep", "tables")
    assert [line.split() for line in done.stdout.splitlines()[:2]] == [
        ["3.0", "MB", "results/indexes"],
        ["2.0", "MB", "results/models"],
    ]
    assert "5.0 MB would go, and 0.0 MB stay; nothing was removed without --yes" in done.stdout
    assert left(results) == {*FILES}


def test_a_file_with_two_names_counts_once(results: Path) -> None:
    model = results / "models/tiny-00000001/model.safetensors"
    (model.parent / "again").hardlink_to(model)
    assert "5.0 MB would go" in inside.encore("clean", "--keep", "tables").stdout


def test_a_linked_folder_stays(results: Path, tmp_path: Path) -> None:
    (results / "models").rename(tmp_path / "elsewhere")
    (results / "models").symlink_to(tmp_path / "elsewhere")
    done = inside.encore("clean", "--keep", "tables", "--yes")
    assert "results/models is a link and stays, with what it leads to" in done.stdout
    assert "3.0 MB are gone" in done.stdout
    assert (results / "models/tiny-00000001/model.safetensors").is_file()
    assert not (results / "indexes").exists()


@pytest.mark.parametrize(("keep", "gone"), [("tables", {"models", "indexes"}), ("models", {"indexes"})])
def test_what_is_kept_stays(results: Path, keep: str, gone: set[str]) -> None:
    done = inside.encore("clean", "--keep", keep, "--yes")
    assert done.returncode == 0
    assert left(results) == {name for name in FILES if name.split("/")[0] not in gone}
    assert "MB are gone" in done.stdout


def test_a_run_at_work_and_no_results_are_said(results: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".snakemake/locks").mkdir(parents=True)
    (tmp_path / ".snakemake/locks/0.input.lock").touch()
    assert "a run is at work here" in inside.encore("clean", "--keep", "tables", "--yes").stderr
    assert left(results) == {*FILES}
    monkeypatch.chdir(results)
    assert "there is no results/ here" in inside.encore("clean", "--keep", "tables").stderr


def test_a_folder_that_another_clones_run_makes_keeps_all(results: Path) -> None:
    """Two clones may have one folder of results; one removed 52 MB under the other's run."""
    code = "import sys; from pathlib import Path; from encore.storage.lock import locked\n"
    code += "with locked(Path(sys.argv[1])): print('held', flush=True); input()"
    folder = results / "models/tiny-00000001"
    job = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert job.stdout
    job.stdout.readline()
    done = inside.encore("clean", "--keep", "tables", "--yes")
    job.kill()
    job.communicate()
    assert f"models/tiny-00000001 is being made by process {job.pid} on " in done.stderr
    assert {*FILES} < left(results)
    assert inside.encore("clean", "--keep", "tables", "--yes").returncode == 0, "a lock ends with its owner"

"""Files that change between planning and job, are edited in the middle or truncated; then the bytes are equal."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from jobs import Job, folder_of
from trials import Count

from encore.storage import manifest
from encore.storage.files import remembered_contents, sha256
from tests.support import own_run
from tests.support.clones import Clone

TABLE = "results/tables/table1.csv"


@pytest.fixture
def own(clone: Clone) -> Path:
    """The user's passages, by the clone's run; BM25 alone searches them."""
    folder = own_run.declare(clone)
    rows = (f'{{"_id": "d{number}", "title": "", "text": "a text of {number}"}}\n' for number in range(9))
    (folder / "corpus.jsonl").write_text("".join(rows))
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "a text"}\n')
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    return folder / "corpus.jsonl"


CHANGES = {"vanishes": "path.unlink()", "is cut short": "path.write_bytes(path.read_bytes()[:-20])"}


@pytest.mark.parametrize("change", CHANGES)
def test_a_users_file_that_changes_between_planning_and_job_is_reported_in_one_line(
    clone: Clone, own: Path, change: str, count: Count
) -> None:
    """The job itself changes it, before it reads it and after Snakemake has planned."""
    made = own_run.planned(clone)
    clone.nano(made).succeeded()
    expected, texts, program = clone.files(), own.read_bytes(), "workflow/scripts/make.py"
    shutil.rmtree((clone.root / made).parent)
    before = "from pathlib import Path\n"
    clone.replace(program, before, f"{before}\npath = Path('data/mine/corpus.jsonl')\n{CHANGES[change]}\n")
    assert clone.nano(made).error().startswith("error: data/mine")
    assert not (clone.root / made).exists()
    own.write_bytes(texts)
    clone.replace(program, f"{CHANGES[change]}\n", "")
    clone.nano(made).succeeded()
    assert clone.files() == expected
    count("surroundings", f"a file of the user's that {change} before a job", 1, 1)


@pytest.mark.parametrize("change", ["vanishes", "is cut short"])
def test_a_file_that_changes_between_planning_and_job_is_reported_in_one_line(
    nano: Clone, change: str, same: Callable[[], bool], count: Count
) -> None:
    """The scores of a table; the job was planned with them, and made again they are the same."""
    job = Job(nano, folder_of(nano, "scores/bm25-"))
    read = job.planned["inputs"]["run"]
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
    count("surroundings", "a large file edited in the middle", 1, 1)

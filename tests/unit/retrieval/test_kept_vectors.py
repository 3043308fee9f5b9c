"""Vectors that are removed when all is made of them, and encoded again with the same bytes or refused."""

from pathlib import Path
from typing import Any

import pytest

from encore.errors import EncoreError
from encore.plan.index import INDEX, read_entries
from encore.retrieval import kept_vectors as vectors
from encore.retrieval.kept_vectors import Encode, vectors_of
from encore.storage.environment import KEEP_VECTORS as KEEP
from encore.storage.files import write_json
from encore.storage.manifest import MANIFEST, problems, record

SHARD = Path("results/indexes/model-s0/docs-12345678/000-of-001")
RUNS = [Path("results/runs/model-s0/docs.test"), Path("results/runs/model-s0/docs.valid")]
MODEL, TOKENS = Path("results/models/model-s0"), Path("results/tokens/docs")


def make(folder: Path, inputs: list[Path], **files: bytes) -> None:
    with record(folder, stage="encode", spec={"length": 8}, inputs=inputs):
        for name, content in files.items():
            (folder / name).write_bytes(content)


@pytest.fixture(autouse=True)
def shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shard of a model's vectors, and a plan with two runs over it, neither of which is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(KEEP, "0")
    make(MODEL, [], weights=b"w")
    make(TOKENS, [], ids=b"i")
    make(SHARD, [MODEL, TOKENS], index=b"vectors", docid=b"d1\n")
    entries = {
        str(run): {"stage": "search", "spec": {}, "inputs": {"shard0": str(SHARD)}, "targets": []} for run in RUNS
    }
    write_json(INDEX, {"run": "config.yaml", "patterns": {}, "products": {}, "artifacts": entries})
    return SHARD


def never(*given: object) -> None:
    raise AssertionError("the vectors are there")


def answer(run: Path, encode: Encode = never) -> None:
    with vectors_of([SHARD], read_entries, encode):
        make(run, [SHARD], run=b"r")


class Encoder:
    """Encoding that writes given bytes; what it was called with."""

    def __init__(self, content: bytes) -> None:
        self.content, self.calls = content, list[tuple[object, ...]]()

    def __call__(self, spec: dict[str, Any], inputs: dict[str, Path], place: Path, state: Path) -> None:
        self.calls.append((spec, inputs, place.name))
        assert state == Path("results/state", *SHARD.parts[1:])
        assert state in place.parents
        place.mkdir(parents=True)
        (place / "index").write_bytes(self.content)


def test_vectors_stay_until_all_that_is_planned_of_them_is_made(shard: Path) -> None:
    answer(RUNS[0])
    assert (shard / "index").read_bytes() == b"vectors", "the other run still needs them"
    answer(RUNS[1])
    assert (shard / "index").read_bytes() == b""
    assert (shard / "docid").read_bytes() == b"d1\n"
    assert not list(problems(shard)), "removed is not damaged"


@pytest.mark.parametrize("kept", ["1", None])
def test_vectors_stay_by_default(shard: Path, kept: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEEP)
    if kept:
        monkeypatch.setenv(KEEP, kept)
    for run in RUNS:
        answer(run)
    assert (shard / "index").read_bytes() == b"vectors"


def test_vectors_stay_after_a_failure_and_where_no_plan_knows_them(shard: Path) -> None:
    for run in RUNS:
        make(run, [shard], run=b"r")
    with pytest.raises(ZeroDivisionError), vectors_of([shard], read_entries, never):
        raise ZeroDivisionError
    INDEX.unlink()
    with vectors_of([shard], read_entries, never):
        pass
    assert (shard / "index").read_bytes() == b"vectors"


def test_vectors_stay_where_what_lies_there_was_made_of_others(shard: Path) -> None:
    for run in RUNS:
        make(run, [shard], run=b"r")
    make(shard, [MODEL, TOKENS], index=b"new", docid=b"d1\n")
    answer(RUNS[0])
    assert (shard / "index").read_bytes() == b"new", "the other run is of the earlier vectors, and will be made again"


def test_a_finished_job_does_not_fail_because_nothing_can_be_removed(
    shard: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(RUNS[0])
    monkeypatch.setattr(vectors, "write_bytes", lambda path, data: (_ for _ in ()).throw(OSError("no right to write")))
    answer(RUNS[1])
    assert f"the vectors of {shard} stay: no right to write" in capsys.readouterr().out
    assert (RUNS[1] / MANIFEST).is_file()


def test_removed_vectors_are_encoded_again_while_they_are_needed(shard: Path) -> None:
    for run in RUNS:
        answer(run)
    encode = Encoder(b"vectors")
    (RUNS[0] / MANIFEST).unlink()
    with vectors_of([shard], read_entries, encode):
        assert (shard / "index").read_bytes() == b"vectors"
        make(RUNS[0], [shard], run=b"r")
    assert encode.calls == [({"length": 8}, {"model": MODEL, "tokens": TOKENS}, "000-of-001")]
    assert (shard / "index").read_bytes() == b""


def test_other_bytes_are_refused(shard: Path) -> None:
    for run in RUNS:
        answer(run)
    with pytest.raises(EncoreError, match=r"other bytes.*; remove results/indexes/model-s0/docs-12345678, and"):
        answer(RUNS[0], Encoder(b"VECTORS"))
    assert (shard / "index").read_bytes() == b""
    assert not [path for path in Path("results/state").rglob("*") if path.is_file()]


def test_an_altered_model_is_not_encoded_with(shard: Path) -> None:
    for run in RUNS:
        answer(run)
    encode = Encoder(b"vectors")
    (MODEL / "weights").write_bytes(b"x")
    with pytest.raises(EncoreError, match=r"results/models/model-s0/weights was altered"):
        answer(RUNS[0], encode)
    assert not encode.calls


def test_an_empty_index_of_another_kind_is_damage() -> None:
    lucene = Path("results/indexes/bm25/docs")
    make(lucene, [], index=b"terms")
    (lucene / "index").write_bytes(b"")
    assert list(problems(lucene)) == ["results/indexes/bm25/docs/index has 0 bytes, its manifest says 5"]

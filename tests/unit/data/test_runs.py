"""Runs as matrices: the fast paths against the plain ones, and what damage says."""

import gzip
import itertools
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from encore.data.rankings import Ranking, Run, RunMatrices, rank
from encore.data.runs import RUN, TEXT, describe, read_header, read_run, write_run
from encore.data.trec_runs import read_trec
from encore.errors import EncoreError
from encore.storage.document_ids import DocIds
from encore.storage.manifest import record
from tests.support import inside

HEADER = describe("größe", collection="pydocs", split="test", retrieval=[{"name": "bm25", "k1": 0.9}])
CHOOSING = describe("bm25", collection="pydocs", split="valid-80-s1", retrieval=[])
NAMES = ["\uff5e", "\U0001f600", "é", "z", "Z", "d10", "d9", "d1"]


def drawn(seed: int) -> dict[str, Ranking]:
    """Rankings of different lengths, most scores tied, some of them zeros of both signs."""
    generator = np.random.default_rng(seed)
    run = {}
    for number in range(20):
        documents = generator.permutation(NAMES)[: generator.integers(1, len(NAMES) + 1)].tolist()
        run[f"q{number}"] = rank(documents, generator.integers(-1, 2, len(documents)) * np.float32(0.1) * -1)
    return run


def same(one: Run, other: Run) -> None:
    assert list(one) == list(other)
    for query, found in one.items():
        assert found.documents == other[query].documents
        assert found.scores.tobytes() == other[query].scores.tobytes()


@pytest.mark.parametrize("seed", range(5))
def test_a_run_reads_back_equal_from_matrices_and_from_text(tmp_path: Path, seed: int) -> None:
    run = drawn(seed)
    write_run(tmp_path, run, HEADER)
    same(run, read_run(tmp_path))
    same(run, read_trec(tmp_path / TEXT))
    assert read_header(tmp_path) == HEADER


def test_the_text_is_that_of_the_rankings_line_by_line(tmp_path: Path) -> None:
    run = drawn(7)
    write_run(tmp_path, run, HEADER)
    expected = [
        f"{query} Q0 {document} {place} {score:g} größe"
        for query, found in run.items()
        for place, (document, score) in enumerate(zip(found.documents, found.scores.tolist(), strict=True), 1)
    ]
    assert gzip.decompress((tmp_path / TEXT).read_bytes()).decode().splitlines() == expected
    assert not any(" -0 " in line for line in expected)


def test_a_run_that_chooses_has_no_text(tmp_path: Path) -> None:
    write_run(tmp_path, drawn(3), CHOOSING)
    assert not (tmp_path / TEXT).exists()


def test_equal_runs_are_equal_bytes_whatever_their_order_was(tmp_path: Path) -> None:
    run = drawn(1)
    backwards = {query: Ranking(found.documents[::-1], found.scores[::-1]) for query, found in run.items()}
    for name, each in (("one", run), ("other", backwards)):
        write_run(tmp_path / name, each, HEADER)
    for file in (RUN, TEXT):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes()


def test_a_search_gives_what_its_rankings_would() -> None:
    """Rows of a collection in any order, against rankings of their ids."""
    generator = np.random.default_rng(3)
    collection = DocIds.of(generator.permutation([f"d{number}" for number in range(50)]).tolist())
    places = collection.places()
    rows = np.array([generator.permutation(30)[:9] for _ in range(12)])
    scores = generator.integers(0, 4, rows.shape).astype(np.float32)
    order = np.lexsort((-places[rows], -scores), axis=1)
    rows, scores = np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1)
    queries = [f"q{number}" for number in range(12)]
    found = RunMatrices.chosen(queries, collection, rows, scores)
    plain = {query: rank(collection.take(its), of) for query, its, of in zip(queries, rows, scores, strict=True)}
    same(found, plain)
    again = RunMatrices.of(plain)
    assert (found.rows == again.rows).all()
    assert list(found.documents) == list(again.documents) == sorted(found.documents, key=str.encode)


def test_only_reported_queries_have_text(tmp_path: Path) -> None:
    for split, files in (
        ("test-80.sentence", {RUN, TEXT}),
        ("graded", {RUN, TEXT}),
        ("train-1", {RUN}),
        ("valid", {RUN}),
    ):
        write_run(tmp_path / split, drawn(0), describe("x", collection="c", split=split, retrieval=[]))
        assert {path.name for path in (tmp_path / split).iterdir()} == files


@pytest.mark.parametrize("run", [{}, {"q": Ranking([], np.empty(0, np.float32))}])
def test_a_run_of_nothing_reads_as_nothing(tmp_path: Path, run: dict[str, Ranking]) -> None:
    write_run(tmp_path, run, HEADER)
    assert read_run(tmp_path) == {}
    assert read_trec(tmp_path / TEXT) == {}


def test_queries_without_an_answer_are_absent(tmp_path: Path) -> None:
    run = {"a": rank(["d"], [1.0]), "b": Ranking([], np.empty(0, np.float32)), "c": rank(["d", "e"], [1.0, 1.0])}
    write_run(tmp_path, run, HEADER)
    back = read_run(tmp_path)
    assert (list(back), "b" in back, back.get("b")) == (["a", "c"], False, None)
    assert back.places(["c", "b", "a"]).tolist() == [1, -1, 0]


def test_hits_that_are_taken_out_let_those_below_move_up() -> None:
    run = drawn(4)
    matrices = RunMatrices.of(run)
    out = np.array([name in ("é", "d9") for name in matrices.documents])[matrices.rows] & (matrices.rows >= 0)
    kept = {
        query: rank(*zip(*pairs, strict=True))  # type: ignore[arg-type]
        for query, found in run.items()
        if (pairs := [each for each in zip(found.documents, found.scores, strict=True) if each[0] not in ("é", "d9")])
    }
    assert len(kept) < len(run) or any(len(kept[query]) < len(run[query]) for query in kept)
    same(matrices.without(out), kept)
    matrices.without(out).check()


def test_the_head_of_a_run_is_the_head_of_its_rankings() -> None:
    run = drawn(5)
    same(RunMatrices.of(run).cut(3), {q: Ranking(found.documents[:3], found.scores[:3]) for q, found in run.items()})


def swapped(arrays: dict[str, Any]) -> None:
    arrays["rows"][0, :2] = arrays["rows"][0, 1::-1]


DAMAGE = {
    "rows (20, 7) and scores (20, 8)": lambda arrays: arrays.update(rows=arrays["rows"][:, :-1]),
    "of 20 queries do not match": lambda arrays: arrays.update(rows=arrays["rows"][1:], scores=arrays["scores"][1:]),
    "rows are float64": lambda arrays: arrays.update(rows=arrays["rows"].astype(float)),
    "rows are from -1 to 8, but there are 8": lambda arrays: arrays["rows"].__setitem__((3, 0), 8),
    "rows are from -2": lambda arrays: arrays["rows"].__setitem__((3, 0), -2),
    "a score is not a finite": lambda arrays: arrays["scores"].__setitem__((3, 0), np.nan),
    "not in its order": swapped,
    "a ranking is empty or not": lambda arrays: arrays["rows"].__setitem__((0, 1), arrays["rows"][0, 0]),  # twice
    "a ranking is empty": lambda arrays: arrays["rows"].__setitem__(3, -1),
    "can't decode byte": lambda arrays: arrays["queries"].__setitem__(0, 0xFF),
    "'rows is not a file": lambda arrays: arrays.pop("rows"),
    "allow_pickle": lambda arrays: arrays.update(rows=np.array([{}], dtype=object)),
}


@pytest.mark.parametrize("message", DAMAGE)
def test_damaged_matrices_are_refused_in_one_line(tmp_path: Path, message: str) -> None:
    write_run(tmp_path, {query: rank(NAMES[n % 3 :], [1.0] * (8 - n % 3)) for n, query in enumerate(drawn(0))}, HEADER)
    with np.load(tmp_path / RUN) as file:
        arrays = {name: file[name].copy() for name in file}
    DAMAGE[message](arrays)
    with (tmp_path / RUN).open("wb") as target:
        np.savez(target, **arrays)
    with pytest.raises(EncoreError) as caught:
        read_run(tmp_path)
    assert message in str(caught.value)
    assert str(tmp_path / RUN) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[: len(data) // 2], lambda data: b""])
def test_a_cut_file_is_refused(tmp_path: Path, damage: Any) -> None:
    write_run(tmp_path, drawn(0), HEADER)
    (tmp_path / RUN).write_bytes(damage((tmp_path / RUN).read_bytes()))
    with pytest.raises(EncoreError, match="is damaged"):
        read_run(tmp_path)


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    write_run(tmp_path, drawn(0), HEADER)
    with zipfile.ZipFile(tmp_path / RUN) as file:
        begin = file.getinfo("scores.npy").header_offset + 300
    data = bytearray((tmp_path / RUN).read_bytes())
    data[begin] ^= 1
    (tmp_path / RUN).write_bytes(data)
    with pytest.raises(EncoreError, match="is damaged"):
        read_run(tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match=r"run\.npz is missing"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"q": Ranking(["a", "b", "a"], np.arange(3))}, "query q: a document occurs twice"),
        ({"p": rank(["a"], [1]), "q": Ranking(["a", "b"], np.array([1, np.inf]))}, "query q: the score of document b"),
        ({"q": Ranking(["a\u00a0b"], np.ones(1))}, "document id 'a\\xa0b'"),
        ({"q": Ranking(["a\nb"], np.ones(1))}, "document id 'a\\nb'"),
        ({"a query": rank(["a"], [1])}, "query id 'a query'"),
    ],
)
def test_what_is_no_run_is_not_written(tmp_path: Path, run: dict[str, Ranking], message: str) -> None:
    with pytest.raises(EncoreError) as caught:
        write_run(tmp_path, run, CHOOSING)
    assert message in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def made(folder: Path, header: dict[str, Any]) -> Path:
    with record(folder, stage="search", spec={}, inputs=[]):
        write_run(folder, drawn(2), header)
    return folder


def test_export_writes_the_bytes_that_reported_runs_have(tmp_path: Path) -> None:
    one = made(tmp_path / "runs/bm25-0/c.test-1", HEADER)
    code = [sys.executable, "-m", "encore.commands", "export", str(one)]
    assert subprocess.run(code, capture_output=True, check=True).stdout == gzip.decompress((one / TEXT).read_bytes())
    other = made(tmp_path / "runs/bm25-0/c.valid-2", CHOOSING)
    done = inside.encore("export", str(one), str(other), "--output", str(tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    placed = [tmp_path / "out/bm25-0" / name / TEXT for name in ("c.test-1", "c.valid-2")]
    assert done.stdout.split() == [str(path) for path in placed]
    assert placed[0].read_bytes() == (one / TEXT).read_bytes()
    same(drawn(2), read_trec(placed[1]))


def test_export_refuses_in_one_line(tmp_path: Path) -> None:
    one = made(tmp_path / "c.test-1", HEADER)
    (one / RUN).write_bytes(b"no run")
    cases = {(str(one),): "has 6 bytes", (str(tmp_path),): "is missing", (str(one), str(one)): "--output"}
    for words, message in cases.items():
        done = inside.encore("export", *words, cwd=tmp_path)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith("error: ")
        assert message in line


def test_importing_runs_is_cheap() -> None:
    code = "import sys, encore.data.runs; print([m for m in ('torch', 'pandas', 'scipy') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_lines_in_any_order_give_the_same_run() -> None:
    run = {"a": rank(["x", "y", "z"], [2, 1, 1]), "b": rank(["y"], [0.5])}
    lines = [(q, d, s) for q, f in run.items() for d, s in zip(f.documents, f.scores.tolist(), strict=True)]
    for order in itertools.permutations(lines):
        of_query = np.array(["ab".index(query) for query, _, _ in order])
        of_document = np.array(["zxy".index(document) for _, document, _ in order])
        same(RunMatrices.arranged(["a", "b"], [*"zxy"], of_query, of_document, [score for *_, score in order]), run)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_runs_of_some_queries_each_join_to_the_whole(size: int) -> None:
    """Rankings of 0 to 49 documents with ties, in parts that share documents and whose longest rankings differ."""
    chance = np.random.default_rng(0)
    run = {}
    for number, count in enumerate(chance.integers(0, 50, 200).tolist()):
        documents = [f"d{each}" for each in chance.choice(3000, count, replace=False)]
        run[f"q{number}"] = rank(documents, chance.integers(0, 9, count))
    whole, queries = RunMatrices.of(run), list(run)
    parts = [queries[first : first + size] for first in range(0, len(queries), size)]
    joined = RunMatrices.joined(RunMatrices.of({query: run[query] for query in part}) for part in parts)
    joined.check()
    assert joined.queries == whole.queries
    assert joined.documents == whole.documents
    for own, expected in ((joined.rows, whole.rows), (joined.scores, whole.scores)):
        assert own.dtype == expected.dtype
        assert np.array_equal(own, expected)

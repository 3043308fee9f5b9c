"""Runs as text: what is written, in which order, and that other people's readers take it."""

import gzip
import io
import subprocess
import sys
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import pytrec_eval
import yaml

from encore.data.rankings import Ranking, rank
from encore.data.runs import describe
from encore.data.trec_runs import END, START, read_lines, read_trec, write_trec
from encore.errors import EncoreError

HEADER = describe("bm25", collection="pydocs", split="test", retrieval=[{"name": "bm25", "method": "BM25", "k1": 0.9}])


def ranking(documents: list[str], scores: list[float]) -> Ranking:
    return Ranking(documents, np.array(scores, dtype=np.float32))


def text_of(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.trec.gz"


def test_ties_go_to_the_higher_id_and_lines_are_written_in_that_order(path: Path) -> None:
    write_trec(path, {"q1": ranking(["d9", "d1", "d10", "b"], [1, 2, 1, 1])}, HEADER)
    assert text_of(path).splitlines() == [
        "q1 Q0 d1 1 2 bm25",
        "q1 Q0 d9 2 1 bm25",
        "q1 Q0 d10 3 1 bm25",
        "q1 Q0 b 4 1 bm25",
    ]


def test_scores_that_differ_below_float32_are_ties() -> None:
    assert rank(["a", "b"], np.array([1.0 + 1e-9, 1.0])).documents == ["b", "a"]


def test_negative_zero_ties_with_zero(path: Path) -> None:
    write_trec(path, {"q": ranking(["a", "b"], [0.0, -0.0])}, HEADER)
    assert "-0" not in text_of(path)
    assert read_trec(path)["q"].documents == ["b", "a"]


def test_order_is_that_of_utf8_bytes() -> None:
    """Above U+FFFF the order of UTF-16 units would be another one."""
    names = ["\uff5e", "\U0001f600", "é", "z", "Z"]
    assert rank(names, [1.0] * 5).documents == sorted(names, key=str.encode, reverse=True)


def test_depth_cuts_after_the_order_is_known() -> None:
    assert rank(["a", "b", "c"], [1, 1, 1], depth=2).documents == ["c", "b"]


def test_every_float32_reads_back_equal(path: Path) -> None:
    bits = np.random.default_rng(0).integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    values = np.concatenate([bits[np.isfinite(bits)], np.float32([1e-45, 1.1754944e-38, 3.4028235e38, 0.1, 16777216])])
    names = [f"d{i}" for i in range(len(values))]
    write_trec(path, {"q": Ranking(names, values)}, HEADER)
    back = read_trec(path)["q"]
    expected = dict(zip(names, values.tolist(), strict=True))
    assert [expected[name] for name in back.documents] == back.scores.tolist()
    assert (np.diff(back.scores) <= 0).all()


def test_equal_runs_are_equal_bytes_whatever_their_order_was(tmp_path: Path) -> None:
    write_trec(tmp_path / "1.gz", {"q": ranking(["a", "b"], [1, 2])}, HEADER)
    write_trec(tmp_path / "other-name.gz", {"q": ranking(["b", "a"], [2, 1])}, HEADER)
    assert (tmp_path / "1.gz").read_bytes() == (tmp_path / "other-name.gz").read_bytes()


def test_the_header_can_be_seen_without_unpacking(path: Path) -> None:
    header = describe("größe", collection="pydocs", split="test", retrieval=[])
    write_trec(path, {"q": ranking(["a"], [1])}, header)
    lines = path.read_bytes()[10:].partition(b"\0")[0].decode("ascii").splitlines()
    assert (lines[0], lines[-1]) == (START, END)
    assert yaml.safe_load("\n".join(line.removeprefix("# ") for line in lines[1:-1])) == header


@pytest.mark.xfail(
    sys.version_info >= (3, 14),
    strict=True,
    reason="ir_measures 0.4.3 reads names of measures by ast.Num, gone from 3.14",
)
def test_ir_measures_takes_the_file_on_its_command_line(path: Path, tmp_path: Path) -> None:
    write_trec(path, {"q1": ranking(["a", "b"], [1, 2]), "q2": ranking(["c"], [1])}, HEADER)
    (tmp_path / "qrels").write_text("q1 0 a 3\nq2 0 c 1\nq2 0 d 1\n")
    command = [sys.executable, "-m", "ir_measures", str(tmp_path / "qrels"), str(path), "RR@10", "R@100"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ["RR@10\t0.7500", "R@100\t0.7500"]


def test_other_readers_take_it(path: Path) -> None:
    write_trec(path, {"q1": ranking(["a", "b"], [1, 2])}, HEADER)
    assert pytrec_eval.parse_run(text_of(path).splitlines()) == {"q1": {"b": 2.0, "a": 1.0}}
    assert [row.doc_id for row in ir_measures.read_trec_run(str(path))] == ["b", "a"]
    assert subprocess.run(["gzip", "-t", str(path)], check=False).returncode == 0


def test_comment_lines_would_not_pass_ir_measures() -> None:
    """Why the header is where it is: should this start to pass, plain comment lines may be considered."""
    with pytest.raises(ValueError, match="unpack"):
        list(ir_measures.read_trec_run(f"{START}\n{END}\nq Q0 d 1 1.0 t\n"))


def test_trec_eval_ranks_as_we_do(path: Path) -> None:
    generator = np.random.default_rng(1)
    documents = [f"d{i}" for i in generator.permutation(200)]
    write_trec(path, {"q": Ranking(documents, generator.integers(0, 9, 200).astype(np.float32))}, HEADER)
    ours = read_trec(path)["q"].documents
    for place in (0, 1, 17, 150):
        evaluator = pytrec_eval.RelevanceEvaluator({"q": {ours[place]: 1}}, {"recip_rank"})
        run = pytrec_eval.parse_run(text_of(path).splitlines())
        assert evaluator.evaluate(run)["q"]["recip_rank"] == pytest.approx(1 / (place + 1))


def of_pyterrier(path: Path) -> None:
    """As ``pt.io.write_results`` does, whose ranks begin at 0."""
    rows = pd.DataFrame([("q1", "d10", 0, 12.0625), ("q1", "d2", 1, 1e-07), ("q2", "d2", 0, -3.5)])
    rows.insert(1, "Q0", "Q0")
    rows.insert(5, "run_name", "pyterrier")
    rows.to_csv(path, sep=" ", mode="w", header=False, index=False)


def of_ranx(path: Path) -> None:
    """As ``Run.save(kind="trec")`` does: the tag of a run without a name is None, and the last line has no end."""
    path.write_text("q1 Q0 d10 1 12.0625 None\nq1 Q0 d2 2 1e-07 None\nq2 Q0 d2 1 -3.5 None")


def of_pyserini(path: Path) -> None:
    """As its ``TrecWriter`` does, with six decimals, by which d2 and d3 are equal, and packed afterwards."""
    lines = "q1 Q0 d10 1 12.062500 Anserini\nq1 Q0 d3 2 0.000000 Anserini\nq1 Q0 d2 3 0.000000 Anserini\n"
    path.write_bytes(gzip.compress(f"{lines}q2 Q0 d2 1 -3.500000 Anserini\n".encode()))


@pytest.mark.parametrize(
    ("written", "name", "first"),
    [
        (of_pyterrier, "run.res", ["d10", "d2"]),
        (of_pyterrier, "run.res.gz", ["d10", "d2"]),
        (of_ranx, "run.trec", ["d10", "d2"]),
        (of_pyserini, "run.trec.gz", ["d10", "d3", "d2"]),
    ],
)
def test_reads_what_the_writers_of_other_programs_write(tmp_path: Path, written, name: str, first: list[str]) -> None:
    written(tmp_path / name)
    run = read_trec(tmp_path / name)
    assert (list(run), run["q1"].documents, run["q2"].documents) == (["q1", "q2"], first, ["d2"])
    assert (run["q1"].scores[0], run["q2"].scores[0]) == (12.0625, -3.5)


def test_reads_other_programs_runs(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_text(
        "# ir_metadata.start\n# tag: x\n# ir_metadata.end\nq 0 a 0 1 t\n\nr 0 c 1 5 t\nq\t0\tb\t1\t2e0\tt\n"
    )
    run = read_trec(path)
    assert {query: found.documents for query, found in run.items()} == {"q": ["b", "a"], "r": ["c"]}
    assert run["q"].scores.dtype == np.float32


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("change", [lambda line: line.replace(" ", "\t"), lambda line: f"{line} ", lambda line: line])
def test_any_blanks_and_any_order_of_queries_give_the_same_run(tmp_path: Path, change, mark: str) -> None:
    path, generator = tmp_path / "run.txt", np.random.default_rng(2)
    lines = [f"q{n % 3} Q0 é#{n} 0 {score!r} t" for n, score in enumerate(generator.normal(size=90).tolist())]
    path.write_text(mark + "\n".join(map(change, lines)))
    run = read_trec(path)
    assert list(run) == ["q0", "q1", "q2"]
    for place, found in enumerate(run.values()):
        own = [line.split() for line in lines[place::3]]
        expected = rank([columns[2] for columns in own], [float(columns[4]) for columns in own])
        assert found.documents == expected.documents
        assert found.scores.tobytes() == expected.scores.tobytes()


def test_an_id_with_a_blank_that_is_no_space_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("q Q0 a 1 2.0 t\nq Q0 b\u00a0c 2 1.0 t\n")
    with pytest.raises(EncoreError, match="line 2: 7 columns"):
        read_trec(path)


def test_a_run_of_nothing_reads_as_nothing(path: Path) -> None:
    write_trec(path, {}, HEADER)
    assert read_trec(path) == {}
    write_trec(path, {"q": ranking([], [])}, HEADER)
    assert read_trec(path) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q Q0 a 1 1.0\n", "line 1: 5 columns"),
        ("q Q0 a 1 1.0 t\nq Q0 b c 2 0.5 t\n", "line 2: 7 columns"),
        ("q Q0 a 1 high t\n", "line 1: the score 'high' is not a number"),
        ("q Q0 a 1 nan t\n", "document a is not a finite"),
        ("q Q0 a 1 2 t\nq Q0 a 2 1 t\n", "twice"),
    ],
)
def test_bad_lines_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "run.txt"
    path.write_text(text)
    with pytest.raises(EncoreError, match=message) as caught:
        read_trec(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:-20] + b"\0" * 20])
def test_a_damaged_file_is_refused(path: Path, damage) -> None:
    write_trec(path, {"q": Ranking([f"d{i}" for i in range(1000)], np.random.default_rng(0).random(1000))}, HEADER)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(EncoreError, match="damaged"):
        read_trec(path)


def test_a_missing_file_is_refused(path: Path) -> None:
    with pytest.raises(EncoreError, match="missing"):
        read_trec(path)


@pytest.mark.parametrize(
    ("query", "document", "tag", "message"),
    [
        ("q 1", "d", "t", "query id 'q 1'"),
        ("", "d", "t", "query id ''"),
        ("#q", "d", "t", "like a comment"),
        ("q", "d\u00a01", "t", "document id"),
        ("q", "d", "my system", "tag 'my system'"),
    ],
)
def test_ids_that_columns_cannot_hold_are_refused(
    path: Path, query: str, document: str, tag: str, message: str
) -> None:
    with pytest.raises(EncoreError, match=message):
        write_trec(path, {query: ranking([document], [1])}, {"tag": tag})
    assert list(path.parent.iterdir()) == []


def test_a_score_that_is_no_number_is_refused_with_its_query(path: Path) -> None:
    with pytest.raises(EncoreError, match=r"run\.trec\.gz, query q7: the score of document b"):
        write_trec(path, {"q7": ranking(["a", "b"], [1, float("inf")])}, HEADER)


def lines(text: str) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(text.encode()))


def test_lines_that_a_program_just_writes_are_ordered_by_query_as_asked_and_within_it_as_ranked() -> None:
    run = read_lines(lines("b Q0 d1 1 2.5 t\na Q0 d1 1 1 t\na Q0 d2 2 1 t\nb Q0 d3 2 3 t\n"), ["a", "none", "b"])
    assert {query: found.documents for query, found in run.items()} == {"a": ["d2", "d1"], "b": ["d3", "d1"]}
    assert list(run) == ["a", "b"]
    assert run["b"].scores.tolist() == [3, 2.5]


def test_no_lines_are_a_run_of_nothing() -> None:
    assert read_lines(lines(""), ["a"]) == {}


def test_half_a_line_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        read_lines(lines("a Q0 d1 1 2.5 t\na Q0 half"), ["a"])

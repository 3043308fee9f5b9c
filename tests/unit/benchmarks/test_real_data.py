"""The comparison with real files: what agrees, what differs, and that a difference is noticed; on made-up files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

from harness import published, real_record, trec_eval  # noqa: E402
from harness.trec_eval import Case, expression  # noqa: E402

from encore.errors import EncoreError  # noqa: E402

RUN = "q1 Q0 d1 1 0.9 us\nq1 Q0 d3 2 0.5 us and more\nq1 Q0 d2 3 0.5 us\nq2 Q0 d2 1 0.1 us\n"
QRELS = "# a comment\nq1 0 d2 2\nq1 0 d1 0\nq2 0 d2 1\nq3 0 d2 1\n"
# Ties stand by descending id, so d2 is third: RR 1/3, R@5 1 of 1. q3 has no answer and counts where it is asked for.
PRINTED = "runid all us\nrecip_rank q1 0.3333\nrecip_rank q2 1.0000\nrecip_rank all {mean}\nrecall_5 q1 1.0000\n"


def files(folder: Path, mean: str) -> Path:
    (folder / "run").write_text(RUN)
    (folder / "qrels").write_text(QRELS)
    (folder / "output").write_text(PRINTED.format(mean=mean))
    return folder


@pytest.mark.parametrize(
    ("complete", "mean", "agrees"), [(False, "0.6667", True), (True, "0.4444", True), (True, "0.6667", False)]
)
def test_measures_are_compared_with_what_trec_eval_prints(
    tmp_path: Path, complete: bool, mean: str, agrees: bool
) -> None:
    found = trec_eval.compare(files(tmp_path, mean), Case("run", "qrels", "output", complete=complete))
    assert (found["measures"], found["values"], found["agrees"]) == (2, 4, agrees)


def test_a_threshold_and_fewer_ranks_are_other_measures() -> None:
    assert expression("recip_rank", rel=2) == "RR(rel=2)"
    assert expression("map", ranks=10) == "AP@10"
    assert expression("P_5", rel=2, ranks=10) == "P(rel=2)@5"
    assert expression("ndcg_cut_10") == "nDCG@10"
    assert [
        expression("ndcg", rel=2),
        expression("ndcg", ranks=10),
        expression("P_20", ranks=10),
        expression("utility"),
    ] == [None] * 4


def test_an_output_without_our_measures_is_refused(tmp_path: Path) -> None:
    files(tmp_path, "0.6667")
    (tmp_path / "output").write_text("bpref all 0.1\n")
    with pytest.raises(EncoreError, match="has no measure of ours"):
        trec_eval.compare(tmp_path, Case("run", "qrels", "output"))


def test_judgments_with_another_number_of_columns_are_refused(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q1 0 d1 1\nq1 d1 1\n")
    with pytest.raises(EncoreError, match="line 2: 3 columns"):
        trec_eval.judgments(tmp_path / "qrels")


def test_a_count_that_is_not_the_published_one_differs() -> None:
    rows = published.compared(
        "X", {"queries": 2, "judgments": 3}, {"queries": 2, "judgments": 4, "articles": 1, "origin": "it"}
    )
    assert [row["equal"] for row in rows] == [True, False, False]
    record = {
        "counts": rows,
        "measures": [],
        "significance": [],
        "bm25": [],
        "codes": [],
        "left_out": [],
        "versions": {},
    }
    assert [row["count"] for row in real_record.differing(record)] == ["judgments", "articles"]
    assert "## Differences: 2" in real_record.markdown(record)


@pytest.mark.slow
def test_what_is_not_there_is_named_and_nothing_fails(tmp_path: Path) -> None:
    command = [sys.executable, "benchmarks/real_data.py", "--data", tmp_path, "--output", tmp_path / "out"]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": "src", "PATH": ""}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out/real-data.json").read_text())
    assert record["counts"] == []
    assert {"cranfield", "cacm", "trec-robust03"} <= set(record["left_out"])


def test_the_committed_record_has_no_difference_and_left_nothing_out() -> None:
    record = json.loads((ROOT / "benchmarks/results/real-data.json").read_text())
    assert real_record.differing(record) == []
    assert record["left_out"] == []
    assert {row["file"] for row in record["counts"]} == set(published.read()["counts"])

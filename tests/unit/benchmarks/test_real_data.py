"""The comparison with real files: what agrees, what differs, and that a difference is noticed; on made-up files."""

import gzip
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

from harness import published, real_bm25, real_counts, real_record, trec_eval  # noqa: E402
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


def test_questions_of_each_form_count_where_they_have_an_answer(tmp_path: Path) -> None:
    quoted = '"[\'""Mac """"B""""""\']"'  # a field that its writer had to put in quotes
    (tmp_path / "tsv").write_text(f"who?\t['a', 'b']\nwhat?\t{quoted}\n")
    (tmp_path / "json").write_text('{"question": "who?", "answer": ["a"]}\n{"question": "what?", "answer": [""]}\n')
    assert real_counts.questions(tmp_path / "tsv") == {"questions": 2}
    assert real_counts.questions(tmp_path / "json") == {"questions": 1}


def test_a_squad_answer_counts_where_it_stands(tmp_path: Path) -> None:
    asked = [{"answers": [{"text": "dog", "answer_start": 2}]}, {"answers": [{"text": "dog", "answer_start": 0}]}]
    data = {"data": [{"paragraphs": [{"context": "A dog.", "qas": asked}]}]}
    (tmp_path / "dev-v1.1.json").write_text(json.dumps(data))
    assert real_counts.squad(tmp_path) == {"articles": 1, "paragraphs": 1, "questions": 1}


def test_articles_count_as_published(tmp_path: Path) -> None:
    rows = [
        {"sections": [{"paragraphs": ["Hello."]}, {"paragraphs": []}], "links": ["b", "b"]},
        {"sections": [{"paragraphs": []}, {"paragraphs": ["There."]}], "links": []},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert real_counts.encyclopedia(tmp_path / "a.jsonl") == {
        "articles": 2,
        "articles with a lead": 1,
        "sections with text": 2,
        "links": 1,
    }


def beir(folder: Path, qrels: str, texts: dict[str, str], queries: dict[str, str]) -> Path:
    (folder / "qrels").mkdir(parents=True)
    for name, rows in (("corpus", texts), ("queries", queries)):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt") as file:
            for key, text in rows.items():
                other = {"title": "", "metadata": {"date": "CACM May, 1960", "other": ["Ada, L."]}}
                file.write(json.dumps({"_id": key, "text": text, **other}) + "\n")
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + qrels)
    return folder


def test_rows_of_a_folder_count_packed_or_not(tmp_path: Path) -> None:
    folder = beir(tmp_path / "c", "1\t1\t2\n", {"1": "wing", "2": "soup"}, {"1": "wing", "2": "what"})
    found = real_counts.beir(folder)
    assert found == {"documents": 2, "queries": 2, "judged queries": 1, "judgments": 1, "grade 2": 1}
    for name in ("corpus", "queries"):
        packed = folder / f"{name}.jsonl.gz"
        (folder / f"{name}.jsonl").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    assert real_counts.beir(folder) == found


@pytest.mark.slow
def test_cranfields_best_grade_is_one(tmp_path: Path) -> None:
    """The document that says most of the query has grade 1; as a gain it must be worth most."""
    texts = {"1": "wing flutter at speed", "2": "wing of a bird, and nothing about anything else", "3": "soup", "4": ""}
    folder = beir(tmp_path / "cranfield", "1\t1\t1\n1\t2\t4\n1\t3\t-1\n", texts, {"1": "wing flutter"})
    rows, codes = real_bm25.cranfield(folder)
    scores = {row["reading"]: row for row in rows}
    assert scores["1 the best, -1 left out"]["nDCG@10"] == pytest.approx(1)
    assert scores["codes as gains (upside down), -1 left out"]["nDCG@10"] < 0.8
    assert scores["all pairs relevant"]["AP"] == pytest.approx(2 / 3)
    assert [(row["code"], row["median_rank"]) for row in codes if row["pairs"] and row["code"] > 0] == [(1, 1), (4, 2)]


def test_a_published_score_is_held_against_its_own_row_only() -> None:
    rows = [
        {"reading": reading, "AP": 0.3, "agrees": ""}
        for reading in ("title, ids as published", "whole record, ids as published")
    ]
    found = real_bm25.compared(rows, {"AP": 0.31})
    assert [row["agrees"] for row in found] == ["", False]


def test_a_whole_record_is_all_between_its_tags(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "cacm.tar.gz", "w:gz") as archive:
        text = b"<html>\n<pre>\nOf n <= 7 &amp; m\n\n5 1 5\n</pre>\n</html>\n"
        member = tarfile.TarInfo("CACM-0005.html")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    found = real_bm25._archived(tmp_path / "cacm.tar.gz")
    assert {name: text.split() for name, text in found.items()} == {
        "CACM-0005": ["Of", "n", "<=", "7", "&", "m", "5", "1", "5"]
    }


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

"""A dozen passages in other forms than BEIR's, from files to tables: what `encore new` writes can be run."""

import csv
import gzip
import json
import re

import pytest

from tests.support.clones import Clone

WORDS = ["lift", "drag", "wing", "jet", "shock", "flow", "heat", "skin", "plate", "cone", "wake", "probe"]
PASSAGES = [
    {
        "docid": f"{number:02}",
        "text": f"The {word} of a body. It has the number {number}, and {WORDS[number - 1]} is near.",
    }
    for number, word in enumerate(WORDS)
]


def write_files(clone: Clone) -> None:
    """Pyserini's passages, Tevatron's training rows with a negative each, TREC's topics and judgments."""
    raw = clone.root / "raw"
    raw.mkdir()
    rows = ({"id": each["docid"], "contents": each["text"]} for each in PASSAGES)
    (raw / "docs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    training = (
        {"query_id": f"q{n}", "query": f"what is {WORDS[n]}", "positive_passages": [PASSAGES[n]]}
        | {"negative_passages": [PASSAGES[n + 1]]}
        for n in range(6)
    )
    (raw / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in training))
    for split, first in (("dev", 6), ("test", 9)):
        asked = range(first, first + 3)
        (raw / f"queries.{split}.tsv").write_text("".join(f"q{n}\twhat is {WORDS[n]}\n" for n in asked))
        (raw / f"qrels.{split}.txt").write_text("".join(f"q{n} 0 {n:02} 1.0\n" for n in asked) + "\n")


def cells(clone: Clone, table: str) -> dict[tuple[str, str], str]:
    with (clone.root / f"results/tables/{table}.csv").open(newline="") as file:
        return {(line["row"], line["column"]): line["reproduced"] for line in csv.DictReader(file)}


@pytest.fixture(scope="module")
def few(finished: Clone, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """A clone whose files were converted to a collection and a run, with its table."""
    clone = finished.copy(tmp_path_factory.mktemp("few") / "clone")
    write_files(clone)
    said = clone.encore("new", "few", "--from", "raw", "--config", "config/nano.yaml").succeeded()
    assert "12 passages; 6 queries to train on, 3 to validate with, 3 to test with" in said
    assert "6 training queries list negatives, which replace BM25's (listed_negatives)." in said
    clone.snakemake("--profile", "local", "--configfile", "config/few.yaml").succeeded()
    return clone


def test_a_dozen_passages_give_a_table(few: Clone) -> None:
    found = cells(few, "table1")
    assert {row for row, _ in found} == {"bm25", "none", "control", "ict"}
    assert float(found["bm25", "rr10"]) > 0.5
    assert all(0 <= float(found[row, "rr10"]) <= 1 for row in ("none", "control", "ict"))


def test_rows_learned_from_the_negatives_that_training_rows_list(few: Clone) -> None:
    (made,) = (few.root / "results/negatives").glob("published-*/few.*/negatives.tsv.gz")
    lines = gzip.decompress(made.read_bytes()).decode().splitlines()
    assert lines[1:] == [f"q{n}\t{n + 1:02}\t1" for n in range(6)]


def test_models_pre_train_on_windows_of_passages_alone_and_are_tested_by_the_best_window(few: Clone) -> None:
    """`--pretrain`: fine-tuned by queries of the other run. Passages are cut into two or three windows each (MaxP)."""
    said = few.encore("new", "own", "--beir", "data/few", "--pretrain", "--config", "config/nano.yaml").succeeded()
    assert "12 passages; 3 to test with" in said
    path = few.root / "config/own.yaml"
    text = path.read_text().replace("    path: data/few\n", "    path: data/few\n    windows: [9, 5]\n")
    path.write_text(re.sub(r"^tables: .*$", "tables: {zero-shot: [bm25, ict]}", text, flags=re.M))
    few.snakemake("--profile", "local", "--configfile", "config/own.yaml").succeeded()
    found = cells(few, "zero-shot")
    assert {row for row, _ in found} == {"bm25", "ict"}
    assert float(found["bm25", "rr10"]) > 0.5

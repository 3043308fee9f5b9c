"""A dozen passages in another form than BEIR's, from files to a table: what `encore new` writes can be run."""

import csv
import json

from tests.support.clones import Clone

WORDS = ["lift", "drag", "wing", "jet", "shock", "flow", "heat", "skin", "plate", "cone", "wake", "probe"]


def test_a_dozen_passages_give_a_table(clone: Clone) -> None:
    raw = clone.root / "raw"
    raw.mkdir()
    with (raw / "docs.jsonl").open("w") as file:
        for number, word in enumerate(WORDS):
            text = f"The {word} of a body. It has the number {number}, and {WORDS[number - 1]} is near."
            file.write(json.dumps({"id": f"{number:02}", "contents": text}) + "\n")
    for split, first in (("train", 0), ("dev", 6), ("test", 9)):
        last = first + (6 if split == "train" else 3)
        topics = "".join(f"q{n}\twhat is {WORDS[n]}\n" for n in range(first, last))
        (raw / f"queries.{split}.tsv").write_text(topics)
        (raw / f"qrels.{split}.txt").write_text("".join(f"q{n} 0 {n:02} 1.0\n" for n in range(first, last)) + "\n")
    said = clone.encore("new", "few", "--from", "raw", "--config", "config/nano.yaml").succeeded()
    assert "12 passages; 6 queries to train on, 3 to validate with, 3 to test with" in said
    clone.snakemake("--profile", "local", "--configfile", "config/few.yaml").succeeded()
    with (clone.root / "results/tables/table1.csv").open(newline="") as file:
        found = {(line["row"], line["column"]): line["reproduced"] for line in csv.DictReader(file)}
    assert {row for row, _ in found} == {"bm25", "none", "control", "ict"}
    assert float(found["bm25", "rr10"]) > 0.5
    assert all(0 <= float(found[row, "rr10"]) <= 1 for row in ("none", "control", "ict"))

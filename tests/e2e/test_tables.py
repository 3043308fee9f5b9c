"""A table with every source of values after a finished nano run: only what it lacks is made, and it is right."""

import csv
import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.support.clones import Clone

TABLE = "results/tables/many.csv"
CONFIG = ("--config", "config/nano.yaml")
ENTRY = """

many:
  title: Everything that a table can say
  reported: printed.csv
  unit: percent
  rows:
    - {id: bm25, label: BM25, system: bm25, not_applicable: {loss: it learns nothing}}
    - {id: ict, label: ICT, system: "bert-base+ict+{recipe}"}
    - {id: seed, label: SEED, reported_only: "Lu et al. 2021"}
  columns:
    - id: one
      label: One
      <<: &test {dataset: msmarco-passage, split: test, measure: "RR@10"}
      vars: &bm25 {recipe: marco-bm25}
    - {id: two, label: Two, <<: *test, vars: {recipe: marco-bm25+marco-hn}}
    - {id: valid, label: V, dataset: wikipedia, split: valid, measure: "RR@10", hidden: true, vars: *bm25}
    - {id: mean, label: Mean, mean_of: [one, two, valid], reported_dataset: all}
    - {id: loss, label: Loss, held_out: contrast, vars: *bm25}
    - {id: masked, label: Masked, dataset: msmarco-passage, masked_loss: mlm, vars: *bm25}
    - {id: spread, label: Spread, dataset: msmarco-passage, vectors: effective_dimension, vars: *bm25}
    - {id: passages, label: Passages, dataset: msmarco-passage, statistic: passages}
    - {id: length, label: Length, dataset: msmarco-passage, tokens: queries, vars: *bm25}
"""
PRINTED = "row_label,dataset,metric,value\nICT,all,Mean,31.6\nSEED,all,Mean,OOM\n"
# BM25's own run, as if somebody had released it.
RELEASED = """systems:
  theirs: {kind: run, path: released.trec.gz, answers: [pydocs-stdlib.test], label: Theirs, source: BM25's}
"""


@pytest.fixture
def many(nano: Clone) -> Clone:
    """Nano with a table of every source that needs no training next to table 1's."""
    tables = nano.root / "config/papers/encore/tables.yaml"
    tables.write_text(tables.read_text() + ENTRY)
    (tables.parent / "printed.csv").write_text(PRINTED)
    nano.replace(
        "config/nano.yaml", "tables: {table1:", f"{RELEASED}tables: {{many: [bm25, ict, seed, theirs], table1:"
    )
    (run,) = nano.folder("runs", "bm25").glob("pydocs-stdlib.test-*/run.trec.gz")
    shutil.copy(run, nano.root / "released.trec.gz")
    return nano


def lines(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    columns = [column["id"] for column in yaml.safe_load(ENTRY)["many"]["columns"]]
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    return {(line["row"], columns[place % len(columns)]): line for place, line in enumerate(found)}


def test_a_table_reads_what_is_there_and_says_what_it_means(many: Clone) -> None:
    made = {job.split()[0] for job in many.built(TABLE)}
    assert made == {"lucene_search", "search", "evaluate", "masked_loss", "inspect_model", "take_run", "table"}
    assert many.planned(TABLE) == set()
    found = lines(many.root / TABLE)
    value = {address: line["reproduced"] for address, line in found.items()}

    ict = many.folder("models", "tiny+ict-s0")
    assert float(value["ict", "loss"]) == float((ict / "held_out.tsv").read_text().split()[-2])
    (told,) = (many.root / "results/losses").glob("tiny+ict-s0-*/*/loss.json")
    assert (json.loads(told.read_text())["loss"], value["ict", "masked"]) == (None, "")  # nothing trained a head
    statistics = json.loads((many.folder("collections", "pydocs-stdlib") / "statistics.json").read_text())
    assert float(value["ict", "passages"]) == float(value["bm25", "passages"]) == statistics["passages"]
    parts = [float(value["ict", name]) for name in ("one", "two", "valid")]
    assert float(value["ict", "mean"]) == pytest.approx(sum(parts) / 3)
    assert len(set(parts)) == 3
    assert float(value["ict", "length"]) > 1
    assert {value["seed", name] for name in ("one", "mean", "passages")} == {value["bm25", "loss"]} == {""}
    assert (found["seed", "mean"]["source"], found["ict", "mean"]["reported"]) == ("Lu et al. 2021", "0.316")

    assert (value["theirs", "one"], value["theirs", "valid"]) == (value["bm25", "one"], "")
    assert found["theirs", "one"]["origin"] == "run of others"

    page = (many.root / TABLE).with_suffix(".md").read_text()
    assert "Theirs: a run that others made (BM25's, released.trec.gz, sha256 " in page
    assert "(OOM)" in page
    assert "(31.6; " in page
    assert "BM25 has no Loss: it learns nothing." in page
    many.nano("all").succeeded()  # the report knows of every table
    assert "0 bad" in many.encore("audit", *CONFIG).succeeded()

    (ict / "held_out.tsv").write_text("step\\tloss\\tcontrast\\n0\\t1\\t1\\n")
    damaged = many.encore("audit", *CONFIG)
    assert damaged.code != 0
    assert "affects" in damaged.output
    assert "many: ICT" in damaged.output

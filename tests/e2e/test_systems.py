"""Recipes and systems after a run with papers' tables: students, indexes, a fusion; what that made is found."""

import csv
import json
from pathlib import Path

import pytest

from tests.support.clones import Clone

ROWS = ["Recipes: tct", "tct-hn-plus", "fp16", "hnsw", "fusion", "colbert"]
TABLE = "results/tables/table2.csv"
FIGURE = "results/figures/corpus_growth.csv"
PANEL = "[{label: Recall, split: test, measure: R@100}]"


@pytest.fixture
def small(papers: Clone, tmp_path: Path) -> Clone:
    """Nano with some rows of table 2, and one model in a growing collection; ColBERT and a student are there."""
    nano = papers.copy(tmp_path / "nano")
    nano.replace("config/nano.yaml", "tables: {table1:", f"tables: {{table2: {json.dumps(ROWS)}, table1:")
    systems = f"    corpus_growth: {{systems: {{TCT-ColBERT: bert-base-tct+colbert+tct}}, panels: {PANEL}}}\n"
    nano.replace("config/nano.yaml", "  figures:\n", "  figures:\n" + systems)
    nano.replace("config/nano.yaml", "numerics:", "latency: {queries: 10, warm_up: 2}\nnumerics:")
    return nano


def test_recipes_and_systems(small: Clone) -> None:
    jobs = small.built(TABLE, FIGURE)
    made = {job.split()[0] for job in jobs}
    assert {"build_index", "search_index", "tune_fusion", "fuse"} <= made
    assert {"measure_latency", "draw"} <= made, "the growing collection itself is that of a claim's figure"
    assert not {"finetune tiny+colbert-s0", "finetune tiny+colbert+tct-s0", "rerank bm25-colbert-s0"} & {
        " ".join(job.split()[:2]) for job in jobs
    }, "two runs share what both have"
    assert small.planned(TABLE, FIGURE) == set()

    rows = list(csv.DictReader((small.root / TABLE).open()))
    assert {row["row"] for row in rows} == {"tct", "tct-hn-plus", "fp16", "hnsw", "fusion", "colbert"}
    values = {(row["row"], row["measure"]): float(row["reproduced"]) for row in rows if row["reproduced"]}
    assert len(values) == len({row["row"] for row in rows}) * 5  # standard library only: no graded judgments
    assert min(values.values()) > 0
    assert values["fp16", "RR@10"] == pytest.approx(values["tct-hn-plus", "RR@10"], abs=0.01)

    grown = list(csv.DictReader((small.root / FIGURE).open()))
    assert [row["size"] for row in grown] == ["start", "0.5", "all"]
    recalls = [float(row["value"]) for row in grown]
    assert recalls == sorted(recalls, reverse=True)

    # A student's temperature is no teacher's: what the teacher said stays, and the students are taught again.
    small.replace("config/nano.yaml", "    tct: {teacher_temperature: 0.05}", "    tct: {teacher_temperature: 0.1}")
    again = small.planned(TABLE)
    assert "finetune tiny+colbert+tct-s0" in again
    assert "finetune tiny+colbert-s0" not in again
    assert "teacher_scores tiny+colbert-s0 pydocs-stdlib.train.200" not in again

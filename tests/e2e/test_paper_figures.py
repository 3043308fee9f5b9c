"""Two figures after a finished nano run: one that looks into models, one over training queries."""

import csv
import json

import pytest

from tests.support.clones import Clone

COVERAGE, LABELS = "results/figures/bow/figure2.csv", "results/figures/label_efficiency.csv"
SCALED = """
    label_efficiency:
      lines:
        - {id: none, label: None, system: "bert-base+{step}", role: none}
        - {id: ict, label: ICT, system: "bert-base+ict+{step}", role: objective}
      crossover: [none]
      sizes: [{step: costa-low-500}, {step: marco-bm25}]
    bow/figure2: {systems: {BERT: bert-base, ICT: bert-base+ict}}
    "bow/figure{2,4}": {"""


@pytest.fixture
def small(nano: Clone) -> Clone:
    """Nano with two figures of what it has already, and of two models more."""
    nano.replace("config/nano.yaml", '\n    "bow/figure{2,4}": {', SCALED)
    return nano


def test_figures_are_made_of_what_is_there_and_say_what_was_measured(small: Clone) -> None:
    made = {job.split()[0] for job in small.built(COVERAGE, LABELS)}
    assert made == {"inspect_model", "lucene_search", "negatives", "finetune", "encode", "search", "evaluate", "draw"}
    assert small.planned(COVERAGE, LABELS) == set()

    covered = list(csv.DictReader((small.root / COVERAGE).open()))
    assert [(line["label"], line["k"]) for line in covered] == [
        (x, k) for x in ("BERT", "ICT") for k in ("5", "10", "20")
    ]
    for line in covered:
        assert line["head"] == "embeddings"  # neither has trained a vocabulary head
        assert 0 <= float(line["of_top"]) <= 1
    shares = [float(line["of_text"]) for line in covered]
    assert shares[:3] == sorted(shares[:3])  # more pieces cover no less

    lines = list(csv.DictReader((small.root / LABELS).open()))
    values = [line for line in lines if line["what"] == "value" and line["over"] == "queries"]
    places = {(line["label"], float(line["x"])) for line in values if line["x"]}
    assert places == {(name, queries) for name in ("None", "ICT") for queries in (20, 200)}
    cost = {line["x"]: line for line in lines if line["what"] == "value" and line["over"] == "operations" and line["x"]}
    assert len(cost) >= 2
    model = small.folder("models", "tiny+marco-bm25-s0")
    spent = json.loads((model / "manifest.json").read_text())["results"]["flops"]
    assert any(float(x) == pytest.approx(spent, rel=1e-9) for x in cost)
    assert {line["against"] for line in lines if line["what"] == "crossover"} == {"None"}
    for ending in ("png", "svg", "manifest.json"):
        assert (small.root / LABELS.replace("csv", ending)).is_file()

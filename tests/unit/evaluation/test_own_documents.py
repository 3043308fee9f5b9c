"""Queries that stand among the documents, as in ArguAna: none is an answer to itself, as BEIR's evaluation has it."""

from pathlib import Path

import numpy as np

from encore.data.collection import Collection, Judgment, write_collection
from encore.data.rankings import rank
from encore.evaluation import EvaluationProtocol, judging
from encore.products.catalogue import load_plan

NAMES = ("a", "b", "c")
SPLITS = {"test": {"RR@1": "RR@1", "nDCG@10": "nDCG@10"}}


def test_a_query_does_not_answer_itself(tmp_path: Path) -> None:
    texts = [{"_id": name, "text": f"argument {name}"} for name in NAMES]
    judgments = {"test": [Judgment("a", "b", 1), Judgment("b", "a", 1), Judgment("c", "a", 1)]}
    write_collection(tmp_path / "c", texts, texts, judgments)
    run = {name: rank([name, "a" if name != "a" else "b"], np.array([2.0, 1.0])) for name in ("a", "b")}
    run["c"] = rank(["c"], np.array([1.0]))
    collection = Collection(tmp_path / "c")
    found = judging.judge(run, collection, EvaluationProtocol(splits=SPLITS))["test", "RR@1"]
    assert (found.values.tolist(), found.answered.tolist()) == ([0.0, 0.0, 0.0], [True, True, True])
    found = judging.judge(run, collection, EvaluationProtocol(splits=SPLITS, ignore_identical_ids=True))["test", "RR@1"]
    assert (found.values.tolist(), found.answered.tolist()) == ([1.0, 1.0, 0.0], [True, True, False])


def test_beirs_sets_are_scored_so_and_msmarco_is_not() -> None:
    plan = load_plan(Path(__file__).parents[3] / "config/paper.yaml")
    of_beir = plan.scores("bert-base+bow+bow-beir", 0, "beir-arguana", "test")
    assert of_beir.spec["ignore_identical_ids"] is True
    assert "ignore_identical_ids" not in plan.scores("bm25", None, "msmarco-passage", "test").spec

"""Measures: known values, trec_eval's and MS MARCO's conventions, and ir-measures' values of the same rankings."""

import json
import subprocess
import sys
from pathlib import Path

import ir_measures
import numpy as np
import pytest

from encore.config.datasets import Measure, parse_measure
from encore.data.collection import Collection, Judgment, write_collection
from encore.data.rankings import Ranking, Run, rank
from encore.data.runs import describe, write_run
from encore.errors import EncoreError
from encore.evaluation import EvaluationProtocol, judging, measures, scores
from encore.evaluation.ranks import JudgedRanks
from encore.storage.manifest import record
from tests.support import inside

EXPRESSIONS = [
    *("RR", "RR@10", "RR(rel=3)@10", "R@5", "R(rel=3)@100", "nDCG", "nDCG@10", "nDCG@3"),
    *("AP", "AP(rel=2)@5", "P@5", "P(rel=3)@3", "Success@1", "Success(rel=2)@5"),
]

# Ranks of a: 1, b: 2, c: 3, d: 4, e: 5. Grades: b 1, d 3; z (grade 3) is not retrieved.
FIVE = rank(list("abcde"), [5, 4, 3, 2, 1])
GRADES = {"b": 1, "d": 3, "z": 3, "a": 0}
KNOWN = {
    "RR@10": 1 / 2,
    "RR(rel=3)@10": 1 / 4,
    "RR(rel=3)@3": 0,
    "R@2": 1 / 3,
    "R(rel=3)@5": 1 / 2,
    "P@5": 2 / 5,
    "P@10": 2 / 10,  # ranks that the run does not fill count as well
    "Success@1": 0,
    "Success@2": 1,
    "AP": (1 / 2 + 2 / 4) / 3,
    "AP@3": (1 / 2) / 3,
    "nDCG@10": (1 / np.log2(3) + 3 / np.log2(5)) / (3 + 3 / np.log2(3) + 1 / 2),
    "nDCG@2": (1 / np.log2(3)) / (3 + 3 / np.log2(3)),
}


def value(expression: str, ranking: Ranking, grades: dict[str, int]) -> float:
    measure = parse_measure(expression)
    return measures.measure_values([measure], {"q": grades}, {"q": ranking})[measure]["q"]


@pytest.mark.parametrize("expression", KNOWN)
def test_known_values(expression: str) -> None:
    assert value(expression, FIVE, GRADES) == pytest.approx(KNOWN[expression], abs=1e-12)


def random_world(seed: int) -> tuple[Run, dict[str, dict[str, int]]]:
    """Twenty queries with graded judgments over forty documents, scores in so few values that most are tied."""
    generator = np.random.default_rng(seed)
    documents = [f"d{number}" for number in range(40)]
    run, grades = {}, {}
    for query in map(str, range(20)):
        chosen = generator.permutation(documents)[: generator.integers(1, 30)].tolist()
        run[query] = rank(chosen, generator.integers(0, 6, len(chosen)) / 3)
        judged = generator.permutation(documents)[:8].tolist()
        grades[query] = dict(zip(judged, generator.integers(-1, 4, 8).tolist(), strict=True))
    del run["7"]
    grades["9"] = {"d1": 0}
    return run, grades


def test_values_are_those_of_ir_measures_on_random_rankings() -> None:
    """In the order of ours: its providers break ties in different ways."""
    wanted = [parse_measure(expression) for expression in EXPRESSIONS]
    theirs = [ir_measures.parse_measure(expression) for expression in EXPRESSIONS]
    seen = 0
    for seed in range(30):
        run, grades = random_world(seed)
        grades["3"] = {"not retrieved": 3}
        whole = {
            query: dict(zip(found.documents, range(len(found), 0, -1), strict=True)) for query, found in run.items()
        }
        found = measures.measure_values(wanted, grades, run)
        for metric in ir_measures.iter_calc(theirs, grades, whole):
            value = found[parse_measure(str(metric.measure))][metric.query_id]
            assert value == pytest.approx(metric.value, abs=1e-12), metric.measure
            seen += value > 0
    assert seen > 1000


def test_ties_stand_by_descending_document_id_in_float32() -> None:
    close = [1.0, 1.0 + 1e-9]  # one float32 value
    assert value("RR@10", rank(["a", "b"], close), {"b": 1}) == 1
    assert value("RR@10", rank(["a", "b"], close), {"a": 1}) == 1 / 2


def test_no_answer_and_no_relevant_document_count_as_zero() -> None:
    measure = parse_measure("RR(rel=3)@10")
    grades = {"answered": {"a": 3}, "missing": {"a": 3}, "only grade 1": {"a": 1}}
    found = measures.measure_values([measure], grades, {"answered": FIVE, "only grade 1": FIVE})[measure]
    assert found == {"answered": 1.0, "missing": 0.0, "only grade 1": 0.0}


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("Bpref", "unknown; known are AP, P, R"),
        ("nDGC@10", r"unknown; did you mean nDCG\?"),
        ("RR@0", "unknown"),
        ("nDCG(dcg='exp-log2')@10", "unknown"),
        ("R(rel=2)", "needs a number of ranks, as in R\\(rel=2\\)@10"),
        ("nDCG(rel=2)@10", "no threshold"),
        ("MRR@10", "spelt 'RR@10'"),
        ("RR(rel=01)@10", "unknown"),
    ],
)
def test_an_expression_that_cannot_be_computed_is_refused(expression: str, said: str) -> None:
    with pytest.raises(EncoreError, match=said):
        parse_measure(expression)


def test_an_expression_prints_as_it_was_read() -> None:
    assert [str(parse_measure(expression)) for expression in EXPRESSIONS] == EXPRESSIONS
    assert parse_measure("R(rel=3)@100") == Measure("R", 3, 100)


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    corpus = [{"_id": name, "title": "", "text": name} for name in "abcdez"]
    queries = [{"_id": f"q{number}", "text": "?", "metadata": {"cluster": "m"}} for number in range(3)]
    judged = {
        "test": [Judgment(f"q{number}", document, 3) for number, document in enumerate("adz")],
        "graded": [Judgment("q0", "a", 1), Judgment("q0", "b", 3)],
    }
    write_collection(tmp_path / "collection", corpus, queries, judged)
    return Collection(tmp_path / "collection")


SPLITS = {"test": {"RR@10": "RR(rel=3)@10", "R@100": "R(rel=3)@100"}, "graded": {"nDCG@10": "nDCG@10"}}
PROTOCOL = EvaluationProtocol(splits=SPLITS)


def test_every_judged_query_has_a_row_that_reads_back(collection: Collection, tmp_path: Path) -> None:
    tied = rank(list("abcd"), [2, 1, 1, 1])
    found = judging.judge({"q0": FIVE, "q1": tied, "other": FIVE}, collection, PROTOCOL)
    scores.write_scores(tmp_path, found)
    read = scores.read_scores(tmp_path)
    assert set(read) == {("test", "RR@10"), ("test", "R@100"), ("graded", "nDCG@10")}
    column = read["test", "RR@10"]
    assert column.queries == ["q0", "q1", "q2"]
    assert column.clusters == ["m", "m", "m"]
    np.testing.assert_array_equal(column.values, [1, 1 / 2, 0])
    np.testing.assert_array_equal(column.low, [1, 1 / 4, 0])
    np.testing.assert_array_equal(column.high, [1, 1 / 2, 0])
    np.testing.assert_array_equal(column.answered, [True, True, False])
    assert judging.summary(found)["test"] == {"judged": 3, "answered": 2, "RR@10": 0.5, "R@100": 0.666667}
    before = (tmp_path / scores.FILE).read_bytes()
    scores.write_scores(tmp_path, dict(reversed(found.items())))
    assert (tmp_path / scores.FILE).read_bytes() == before


def test_a_run_for_other_queries_is_refused(collection: Collection) -> None:
    with pytest.raises(EncoreError, match="answers no judged query of split 'graded'"):
        judging.judge({"q1": FIVE}, collection, PROTOCOL)


def test_damaged_scores_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match="is missing"):
        scores.read_scores(tmp_path)
    (tmp_path / scores.FILE).write_bytes(b"PAR1 and then nothing")
    with pytest.raises(EncoreError, match="not readable as scores"):
        scores.read_scores(tmp_path)


def test_the_program_writes_scores_and_a_manifest(collection: Collection, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write_run(tmp_path / "run", {"q0": FIVE}, describe("bm25", collection="c", split="test", retrieval=[]))
    for folder in (tmp_path / "run", collection.folder):
        with record(folder, stage="search", spec={}, inputs=[]):
            pass
    inputs = {"run": tmp_path / "run", "collection": collection.folder}
    said = inside.made("evaluate", {"splits": SPLITS}, inputs, tmp_path / "out")
    assert "test: judged 3, answered 1, R@100 0.333333, RR@10 0.333333" in said
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["results"]["graded"]["judged"] == 1
    assert list(manifest["outputs"]) == [scores.FILE]


def test_nothing_heavy_is_imported() -> None:
    lines = (
        "import sys, encore.evaluation.judging; print(*{'torch', 'pandas', 'scipy', 'transformers'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=True, env={"PYTHONPATH": "src"}
    )
    assert done.stdout.strip() == ""


def test_every_measure_of_the_catalogue_can_be_computed_as_it_is_written(catalogue):
    """Planning does not load the library of measures, so a wrong one would be found after the first run."""
    named = {
        (name, split, expression)
        for name, dataset in catalogue.datasets.items()
        for split, fields in dataset.splits.items()
        for expression in fields.measures.values()
    }
    assert len(named) > 100
    for name, split, expression in sorted(named):
        assert parse_measure(expression), (name, split)


def test_a_measure_without_a_formula_is_refused() -> None:
    ranks = JudgedRanks(1, *np.array([[0], [1], [1], [0], [1]]))
    assert measures.values(Measure("nDCG", cutoff=10), ranks).tolist() == [1]
    with pytest.raises(EncoreError, match=r"measure 'DCG@10' has no formula here"):
        measures.values(Measure("DCG", cutoff=10), ranks)

"""Fusion against a float64 oracle, planted errors, properties, and the choice of its weight."""

import json
from pathlib import Path

import numpy as np
import pytest

from encore.config.datasets import parse_measure
from encore.config.systems import Fusion, WeightGrid, read_system
from encore.data import collection
from encore.data.rankings import Ranking, rank
from encore.data.runs import describe, read_header, read_run, write_run
from encore.errors import EncoreError
from encore.retrieval.fusion import AlignedScores, align, fuse
from encore.stages import tune_fusion
from encore.storage.manifest import record
from tests.support import inside
from tests.support.oracles import fused_scores

DRAWS = range(30)


def ranking(scores: dict[str, float]) -> Ranking:
    return rank(list(scores), list(scores.values()))


def plain(ranked: Ranking) -> dict[str, float]:
    return dict(zip(ranked.documents, ranked.scores.astype(np.float64).tolist(), strict=True))


def drawn(seed: int) -> tuple[Ranking, Ranking]:
    """Two lists that overlap; dense scores of both signs, and a sparse score of exactly 0."""
    generator = np.random.default_rng(seed)
    sparse = {f"d{i}": float(generator.gamma(2, 4)) for i in generator.permutation(60)[:30]}
    sparse[next(iter(sparse))] = 0.0
    dense = {f"d{i}": float(generator.normal()) for i in generator.permutation(60)[:30]}
    return ranking(sparse), ranking(dense)


def worst(seeds: range, weight: float, mistake=lambda pair: pair) -> float:
    """The largest difference between a fused score and the oracle's; infinite where the documents differ."""
    found = 0.0
    for seed in seeds:
        sparse, dense = drawn(seed)
        expected = fused_scores(plain(sparse), plain(dense), weight)
        got = plain(fuse(mistake(align(sparse, dense)), weight))
        if set(got) != set(expected):
            return float("inf")
        found = max(found, *(abs(got[document] - expected[document]) for document in expected))
    return found


@pytest.mark.parametrize("weight", [0.0, 0.06, 0.24, 1.0])
def test_scores_are_the_oracles(weight: float) -> None:
    assert worst(DRAWS, weight) < 1e-5


def zero_is_missing(pair: AlignedScores) -> AlignedScores:
    lowest = pair.sparse[pair.sparse > 0].min()
    return AlignedScores(pair.documents, np.where(pair.sparse == 0, lowest, pair.sparse), pair.dense)


def missing_is_zero(pair: AlignedScores) -> AlignedScores:
    return AlignedScores(pair.documents, pair.sparse, np.where(pair.dense == pair.dense.min(), 0.0, pair.dense))


@pytest.mark.parametrize(
    "mistake",
    [
        zero_is_missing,
        missing_is_zero,
        lambda pair: AlignedScores(pair.documents, pair.dense, pair.sparse),
        lambda pair: AlignedScores(pair.documents[:-1], pair.sparse[:-1], pair.dense[:-1]),
        lambda pair: AlignedScores(pair.documents, pair.sparse / pair.sparse.max(), pair.dense),
    ],
    ids=["zero is missing", "missing is zero", "the other is weighted", "one left out", "normalised"],
)
def test_the_oracle_finds_planted_errors(mistake) -> None:
    assert worst(DRAWS, 0.24, mistake) > 1e-3


def test_values_computed_by_hand() -> None:
    """TCT-ColBERT's equation 7 on paper: the lowest sparse score is 4, the lowest dense score 70."""
    sparse, dense = ranking({"a": 10.0, "b": 6.0, "c": 4.0}), ranking({"b": 80.0, "d": 75.0, "a": 70.0})
    assert plain(fuse(align(sparse, dense), 0.5)) == {"b": 83.0, "d": 77.0, "a": 75.0, "c": 72.0}
    assert fuse(align(sparse, dense), 0.5).documents == ["b", "d", "a", "c"]
    assert fuse(align(sparse, dense), 10.0).documents == ["a", "b", "d", "c"]


@pytest.mark.parametrize("seed", DRAWS)
def test_weight_0_keeps_the_dense_order_above_its_lowest_score(seed: int) -> None:
    sparse, dense = drawn(seed)
    assert fuse(align(sparse, dense), 0.0).documents[: len(dense) - 1] == dense.documents[:-1]


@pytest.mark.parametrize("seed", DRAWS)
def test_exactly_the_documents_of_either_list_appear(seed: int) -> None:
    sparse, dense = drawn(seed)
    assert set(fuse(align(sparse, dense), 0.1).documents) == {*sparse.documents, *dense.documents}


@pytest.mark.parametrize("seed", DRAWS)
def test_scaling_and_shifting_lists_changes_no_order(seed: int) -> None:
    """Both lists times 2; the sparse one times 4 at a quarter of the weight; a constant more on either."""
    sparse, dense = drawn(seed)
    order = fuse(align(sparse, dense), 0.25).documents
    for by, plus, weight in [(2, 0, 0.25), (1, 64, 0.25)]:
        changed = [Ranking(each.documents, each.scores * np.float32(by) + np.float32(plus)) for each in (sparse, dense)]
        assert fuse(align(*changed), weight).documents == order
    assert fuse(align(Ranking(sparse.documents, sparse.scores * np.float32(4)), dense), 0.0625).documents == order


@pytest.mark.parametrize("empty", [None, Ranking([], np.empty(0, np.float32))])
def test_a_missing_list_leaves_the_others_order(empty: Ranking | None) -> None:
    sparse, dense = drawn(0)
    assert fuse(align(empty, dense), 0.3).documents == dense.documents
    assert fuse(align(sparse, empty), 0.3).documents == sparse.documents
    assert len(fuse(align(empty, empty), 0.3)) == 0


@pytest.mark.parametrize("depth", [1, 3, 10, 59, 1000])
def test_a_cut_ranking_is_the_head_of_the_whole(depth: int) -> None:
    """Also amid ties, which the cut must not part by chance."""
    for seed in DRAWS:
        generator = np.random.default_rng(seed)
        coarse = [ranking({f"d{i}": float(generator.integers(3)) for i in generator.permutation(40)}) for _ in range(2)]
        for sparse, dense in [drawn(seed), coarse]:
            whole, head = fuse(align(sparse, dense), 1.0), fuse(align(sparse, dense), 1.0, depth)
            assert head.documents == whole.documents[:depth]
            assert head.scores.tolist() == whole.scores[:depth].tolist()


def test_a_grid_has_both_ends_and_no_dust() -> None:
    grid = WeightGrid.model_validate({"from": 0.02, "to": 0.5, "step": 0.02}).values()
    assert (len(grid), grid[0], grid[2], grid[-1]) == (25, 0.02, 0.06, 0.5)
    assert WeightGrid.model_validate({"from": 0.1, "to": 0.1, "step": 1}).values() == [0.1]
    with pytest.raises(ValueError, match="below"):
        WeightGrid.model_validate({"from": 0.2, "to": 0.1, "step": 0.1})


def test_a_fusion_is_made_of_its_two_lists() -> None:
    fields = read_system(
        {"kind": "fusion", "sparse": "bm25", "dense": "x+y", "weights": {"from": 0, "to": 1, "step": 0.5}}
    )
    assert isinstance(fields, Fusion)
    assert fields.parts == ("bm25", "x+y")
    assert (fields.depth, fields.queries, fields.tuned_on) == (1000, 6000, "train")


# Choosing the weight

GRADES = {"q1": {"a": 1}, "q2": {"b": 1}, "unanswered": {"c": 1}}
SPARSE = {"q1": ranking({"a": 2.0, "x": 1.0}), "q2": ranking({"x": 3.0, "b": 2.0})}
DENSE = {"q1": ranking({"x": 1.0, "a": 0.5}), "q2": ranking({"b": 1.0, "x": 0.1})}


def test_the_best_weight_wins_and_of_equal_ones_the_smallest() -> None:
    """At 0.7 both answers are first; at 0 and at 2 one of them is second; the third query counts 0."""
    tried = tune_fusion.attempt(SPARSE, DENSE, GRADES, parse_measure("RR@10"), [0.0, 0.7, 0.8, 2.0])
    assert tried.means == pytest.approx([1.5 / 3, 2 / 3, 2 / 3, 1.5 / 3])
    assert tried.best == 0.7
    assert tried.summary() == {"weight": 0.7, "mean": 0.666667, "queries": 3, "at_edge": False}


def test_a_best_weight_at_the_end_of_the_grid_is_said() -> None:
    assert tune_fusion.attempt(SPARSE, DENSE, GRADES, parse_measure("RR@10"), [0.7, 2.0]).summary()["at_edge"]


def test_scripts_choose_and_fuse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The weight follows `tuned_on`, both choices are recorded, and the run says what was done."""
    monkeypatch.chdir(tmp_path)
    judged = {"train": ["q1"], "valid": ["q2"], "test": ["t"]}
    with record(Path("tiny"), stage="collection.beir", spec={}, inputs=[]):
        collection.write_collection(
            Path("tiny"),
            [{"_id": name, "title": "", "text": name} for name in "abx"],
            [{"_id": query, "text": "?"} for query in ("q1", "q2", "t")],
            {
                split: [collection.Judgment(query, "b" if query == "q2" else "a", 1) for query in queries]
                for split, queries in judged.items()
            },
        )
    for name, found in {"sparse": SPARSE, "dense": DENSE}.items():
        for query, split in [("q1", "train"), ("q2", "valid"), ("q1", "test")]:
            with record(Path(f"{name}-{split}"), stage="search", spec={}, inputs=[]):
                header = describe(name, collection="tiny", split=split, retrieval=[])
                shown = "t" if split == "test" else query
                write_run(Path(f"{name}-{split}"), {shown: found[query]}, header)
    spec = {"weights": [0.0, 0.7, 2.0], "measure": "RR@10", "tuned_on": "held-out", "queries": None, "sample": 0}
    spec |= {"splits": {"train": "train", "held-out": "valid"}}
    inputs = {"collection": "tiny", "sparse_train": "sparse-train", "dense_train": "dense-train"}
    inputs |= {"sparse_held_out": "sparse-valid", "dense_held_out": "dense-valid"}
    inside.made("tune_fusion", spec, inputs, "weight")
    results = json.loads(Path("weight/manifest.json").read_text())["results"]
    assert {name: each["weight"] for name, each in results.items()} == {"train": 0.7, "held-out": 0.0}
    assert tune_fusion.read_weight(Path("weight")) == 0.0
    trials = Path("weight/trials.tsv").read_text().splitlines()
    assert trials[:3] == ["tuned_on\tweight\tmean", "train\t0\t0.500000", "train\t0.7\t1.000000"]
    assert len(trials) == 7
    inside.made("tune_fusion", spec | {"tuned_on": "train"}, inputs, "weight")
    fusing = {"depth": 1, "split": "test", "queries": None, "sample": 0, "collection": "tiny", "system": "hybrid"}
    inside.made("fuse", fusing, {"sparse": "sparse-test", "dense": "dense-test", "weight": "weight"}, "fused")
    assert {query: found.documents for query, found in read_run(Path("fused")).items()} == {"t": ["a"]}
    assert read_header(Path("fused"))["method"]["retrieval"][0]["weight"] == 0.7


def test_a_weight_folder_that_is_lost_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EncoreError, match=r"weight\.json is missing"):
        tune_fusion.read_weight(tmp_path)

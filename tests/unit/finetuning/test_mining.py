"""Negatives: what is drawn, what never is, and that a draw stays put."""

import gzip
import hashlib
import json

import numpy as np
import pytest

from encore.data.rankings import rank
from encore.errors import EncoreError
from encore.finetuning.negatives import mining as module
from encore.finetuning.negatives.mining import Statistics, identity, merge, mine

RANKING = {"q2": [f"d{i}" for i in range(100)], "q1": ["d5", "d6", "d7"]}
JUDGMENTS = {"q1": {"d6": 3, "d7": 0}, "q2": {"d3": 3, "d8": 1, "d99": 2}, "q3": {"d1": 3}}


def test_judged_documents_are_never_drawn_whatever_their_grade():
    negatives, statistics = mine(RANKING, JUDGMENTS, depth=10, keep=100)
    assert negatives["q1"] == {"d5": 1}
    assert negatives["q2"] == {f"d{i}": i + 1 for i in range(10) if i not in (3, 8)}
    assert statistics == Statistics(queries=2, without=0, kept=9, judged=4)


def test_judged_documents_stay_when_a_recipe_says_so():
    negatives, statistics = mine(RANKING, JUDGMENTS, depth=10, keep=100, exclude_judged=False)
    assert list(negatives["q1"]) == ["d5", "d6", "d7"]
    assert statistics.judged == 0
    assert statistics.kept == 13


def test_judged_documents_take_no_place_of_those_below_the_depth():
    negatives, _ = mine({"q2": RANKING["q2"]}, JUDGMENTS, depth=9, keep=100)
    assert max(negatives["q2"].values()) == 8
    assert len(negatives["q2"]) == 7


def test_a_window_of_ranks_leaves_out_the_best():
    negatives, statistics = mine({"q2": RANKING["q2"]}, JUDGMENTS, depth=10, keep=100, first_rank=2)
    assert negatives["q2"] == {f"d{i}": i + 1 for i in range(1, 10) if i not in (3, 8)}
    assert statistics.judged == 2
    assert mine(RANKING, JUDGMENTS, depth=10, keep=100, first_rank=1) == mine(RANKING, JUDGMENTS, depth=10, keep=100)


def test_a_draw_is_stable_and_in_rank_order():
    drawn = mine(RANKING, JUDGMENTS, depth=100, keep=5, seed=0)[0]["q2"]
    assert list(drawn.values()) == sorted(drawn.values())
    assert all(RANKING["q2"][rank - 1] == document for document, rank in drawn.items())
    alone = mine({"q2": RANKING["q2"]}, JUDGMENTS, depth=100, keep=5, seed=0)[0]["q2"]
    assert drawn == alone, "a draw depends on other queries"
    assert drawn != mine(RANKING, JUDGMENTS, depth=100, keep=5, seed=1)[0]["q2"]
    gone = next(iter(drawn))
    fewer = {"q2": [document for document in RANKING["q2"] if document != gone]}
    assert len(drawn.keys() & mine(fewer, JUDGMENTS, depth=100, keep=5)[0]["q2"].keys()) == 4, "one gone, one replaced"


def test_every_candidate_is_drawn_equally_often():
    counts = dict.fromkeys(RANKING["q2"], 0)
    for seed in range(400):
        for document in mine({"q2": RANKING["q2"]}, {"q2": {}}, depth=100, keep=10, seed=seed)[0]["q2"]:
            counts[document] += 1
    assert sum(counts.values()) == 4000
    assert 15 <= min(counts.values()) <= max(counts.values()) <= 70  # mean 40, standard deviation 6


def test_the_first_ranks_that_are_allowed_are_kept_instead_of_a_draw():
    """As RocketQA's code does, whatever the seed: d3 and d8 are judged, d1 and d4 too probable."""
    for seed in (0, 1):
        found, counts = mine(
            {"q2": RANKING["q2"]}, JUDGMENTS, depth=50, keep=4, kept="first", seed=seed, answering={"q2": {"d1", "d4"}}
        )
        assert found == {"q2": {"d0": 1, "d2": 3, "d5": 6, "d6": 7}}
        assert (counts.kept, counts.judged, counts.answering) == (4, 2, 2)
    assert mine({"q1": ["d5", "d6"]}, JUDGMENTS, depth=50, keep=4, kept="first")[0] == {"q1": {"d5": 1}}


def test_queries_left_with_nothing_are_counted():
    negatives, statistics = mine({"q1": ["d6"]}, JUDGMENTS, depth=10, keep=3)
    assert negatives == {"q1": {}}
    assert statistics.without == 1


def test_a_run_of_another_split_is_refused():
    with pytest.raises(EncoreError, match="q9 of the run has no judgments"):
        mine({"q9": ["d1"]}, JUDGMENTS, depth=10, keep=3)


def test_the_identity_of_a_set_is_that_of_its_sorted_pairs():
    sampled = {"q10": {"d2": 1, "d10": 2}, "q1": {"d\x01": 3, "d": 1}, "q1\x01": {"e": 1}, "q2": {}}
    pairs = sorted(f"{query}\t{document}\n" for query, its in sampled.items() for document in its)
    assert identity(sampled) == hashlib.sha256("".join(pairs).encode()).hexdigest()


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_run_and_the_recipe_no_judged_and_no_answering_document_is_drawn(seed):
    rng = np.random.default_rng(seed)
    documents = [f"d{i}" for i in range(60)]
    ranking = {f"q{i}": rng.permutation(documents).tolist() for i in range(8)}
    judgments = {query: {d: int(rng.integers(0, 4)) for d in rng.choice(documents, 9)} for query in ranking}
    right = {query: set(rng.choice(documents, 9).tolist()) for query in ranking}
    recipe = {
        "depth": int(rng.integers(5, 60)),
        "keep": int(rng.integers(1, 50)),
        "first_rank": int(rng.integers(1, 6)),
    }
    for exclude in (True, False):
        drawn, counts = mine(ranking, judgments, exclude_judged=exclude, seed=seed, answering=right, **recipe)
        assert any(drawn.values())
        for query, negatives in drawn.items():
            assert not negatives.keys() & right[query]
            assert not exclude or not negatives.keys() & judgments[query].keys()
            assert all(recipe["first_rank"] <= rank <= recipe["depth"] for rank in negatives.values())
            assert len(negatives) <= recipe["keep"]
        window = sum(recipe["first_rank"] <= rank <= recipe["depth"] for rank in range(1, 61)) * len(ranking)
        free, _ = mine(ranking, judgments, exclude_judged=exclude, answering=right, **recipe | {"keep": 60})
        assert window == sum(map(len, free.values())) + counts.judged + counts.answering


def test_two_sets_are_merged_and_keep_the_first_ones_ranks():
    one, other = {"b": {"x": 3}, "a": {"x": 1, "y": 2}}, {"a": {"y": 9, "z": 4}, "c": {"x": 5}}
    assert merge(one, other) == {"a": {"x": 1, "y": 2, "z": 4}, "b": {"x": 3}, "c": {"x": 5}}
    assert list(merge(one, other)) == ["a", "b", "c"]


def test_the_digest_is_of_the_set():
    one = {"a": {"x": 1, "y": 2}, "b": {}}
    assert identity(one) == identity({"a": {"y": 7, "x": 1}}) == hashlib.sha256(b"a\tx\na\ty\n").hexdigest()
    assert identity(one) != identity({"a": {"x": 1}, "b": {"y": 2}})


def test_what_is_counted_is_written_with_the_sets_digest(tmp_path):
    negatives, counts = mine(RANKING, JUDGMENTS, depth=100, keep=5)
    found = module.write_negatives(tmp_path, negatives, counts, {"q1": {"d3": 4}})
    assert json.loads((tmp_path / "statistics.json").read_text()) == found
    assert (found["set"], found["positives"], found["kept"]) == (identity(negatives), 1, counts.kept)
    assert module.read_positives(tmp_path) == {"q1": {"d3": 4}}
    module.write_negatives(tmp_path, negatives, counts)
    assert module.read_positives(tmp_path) == {}, "those of an earlier recipe are gone"


def test_files_read_back_and_have_equal_bytes(tmp_path):
    negatives, statistics = mine(RANKING, JUDGMENTS, depth=100, keep=5)
    for name in ("one", "two"):
        module.write_negatives(tmp_path / name, negatives, statistics)
    assert module.read_negatives(tmp_path / "one") == negatives
    for file in ("negatives.tsv.gz", "statistics.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"query-id\tcorpus-id\trank\nq1\td1\t1\nq1\td2\n", "line 3"),
        (b"query-id\tcorpus-id\trank\nq1\td1\tfirst\n", "line 2"),
        (b"something else\n", "not a file of negatives"),
    ],
)
def test_a_damaged_file_is_one_clear_line(tmp_path, content, words):
    (tmp_path / "negatives.tsv.gz").write_bytes(gzip.compress(content))
    with pytest.raises(EncoreError, match=words) as caught:
        module.read_negatives(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_missing_or_cut_file_is_one_clear_line(tmp_path):
    with pytest.raises(EncoreError, match="is missing"):
        module.read_negatives(tmp_path)
    whole = gzip.compress(b"query-id\tcorpus-id\trank\n" + b"q1\td1\t1\n" * 1000)
    (tmp_path / "negatives.tsv.gz").write_bytes(whole[:-20])
    with pytest.raises(EncoreError, match="mine the negatives again"):
        module.read_negatives(tmp_path)


def test_a_querys_own_document_is_taken_out_before_ranks_are_counted() -> None:
    run = {"q1": rank(["q1", "d1", "d2"], [3, 2, 1]), "q2": rank(["d1", "q1"], [2, 1])}
    candidates = module.Candidates(run, {"q1": {"q1"}, "q2": {"q2"}})
    assert (list(candidates), len(candidates)) == (["q1", "q2"], 2)
    found, _ = mine(candidates, {"q1": {"d9": 1}, "q2": {"d9": 1}}, depth=1, keep=5)
    assert found == {"q1": {"d1": 1}, "q2": {"d1": 1}}


def test_what_a_cross_encoder_finds_probable_is_not_drawn():
    """A score of 0 is a probability of a half, and ln(0.1 / 0.9) = -2.197 one of a tenth."""
    run = {"q1": rank(["a", "b", "c", "d"], [3.0, 0.0, -2.1, -2.3]), "q2": rank(["a"], [-9.0])}
    assert module.false_negatives(run, 0.1) == {"q1": {"a", "b", "c"}, "q2": set()}
    assert module.false_negatives(run, 0.5) == {"q1": {"a", "b"}, "q2": set()}
    ranking = {query: found.documents for query, found in run.items()}
    drawn, counts = mine(
        ranking, {"q1": {"a": 1}, "q2": {}}, depth=4, keep=4, answering=module.false_negatives(run, 0.1)
    )
    assert drawn == {"q1": {"d": 4}, "q2": {"a": 1}}
    assert (counts.judged, counts.answering, counts.without) == (1, 2, 0)

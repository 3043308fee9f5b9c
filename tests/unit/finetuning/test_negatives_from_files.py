"""Negatives from files of others: triples, and candidates of several systems with a cross-encoder's scores."""

import gzip
import json

import numpy as np
import pytest

from encore.data.collection import Collection
from encore.errors import EncoreError
from encore.finetuning.negatives import triples
from encore.finetuning.negatives.systems_file import from_systems
from encore.finetuning.negatives.triples import NegativesRequest

JUDGMENTS = {"q1": {"p1": 1}, "q2": {"p2": 1, "z": 0}, "q3": {"p3": 1}}
DOCUMENTS = {"p1", "p2", "p3", "z", *(f"n{i}" for i in range(50))}
WANTED = NegativesRequest({"q1", "q2"}, JUDGMENTS, DOCUMENTS)


def from_triples(path, wanted, **recipe):
    """Ids alone, so that the collection's texts are not looked at."""
    return triples.from_triples(path, wanted, Collection(path.parent), **recipe)


def write(path, lines):
    path.write_bytes(gzip.compress("\n".join(lines).encode()) if path.suffix == ".gz" else "\n".join(lines).encode())
    return path


@pytest.mark.parametrize("name", ["triples.tsv", "triples.tsv.gz"])
def test_triples_are_read_judged_and_strange_ones_counted(tmp_path, name):
    lines = ["q1\tp1\tn1", "q1\tp1\tn2", "q1\tp1\tn1", "q1\tp1\tp1", "q3\tp3\tn9", "q9\tp1\tn1", "q2\tp2\tstrange"]
    drawn, counts = from_triples(write(tmp_path / name, lines), WANTED, keep=9, seed=0)
    assert {query: set(documents) for query, documents in drawn.items()} == {"q1": {"n1", "n2"}, "q2": set()}
    assert (counts.queries, counts.without, counts.kept, counts.judged, counts.unknown) == (2, 1, 2, 1, 2)


def test_a_judged_triple_stays_where_the_recipe_keeps_it(tmp_path):
    wanted = NegativesRequest({"q2"}, JUDGMENTS, DOCUMENTS, exclude_judged=False)
    drawn, counts = from_triples(write(tmp_path / "t.tsv", ["q2\tp2\tp2", "q2\tp2\tz"]), wanted, keep=9, seed=0)
    assert (set(drawn["q2"]), counts.judged) == ({"p2", "z"}, 0)


@pytest.mark.parametrize("most", [1, 40, 10**6])
def test_a_draw_is_that_of_all_triples_however_they_come_and_however_few_are_held(tmp_path, monkeypatch, most):
    monkeypatch.setattr(triples, "WAITING", most)
    lines = [f"q1\tp1\tn{i % 50}" for i in range(500)] + [f"q2\tp2\tn{i}" for i in range(0, 50, 7)]
    for keep, seed in ((1, 0), (2, 0), (30, 5)):
        draws = []
        for order in range(4):
            path = write(tmp_path / "t.tsv", np.random.default_rng(order).permutation(lines).tolist())
            drawn, counts = from_triples(path, WANTED, keep=keep, seed=seed)
            draws.append({query: list(found) for query, found in drawn.items()})
        assert draws == [draws[0]] * 4
        assert [len(set(found)) for found in draws[0].values()] == [keep, min(keep, 8)]
        assert counts.kept == keep + min(keep, 8)


def test_a_draw_is_uniform_and_another_seeds_is_another(tmp_path):
    """Each of fifty candidates is drawn about as often as any other; more of them, and a smaller draw is a part."""
    path = write(tmp_path / "t.tsv", [f"q1\tp1\tn{i}" for i in range(50)])
    draws = [from_triples(path, WANTED, keep=10, seed=seed)[0]["q1"] for seed in range(300)]
    often = np.array([sum(f"n{i}" in drawn for drawn in draws) for i in range(50)])
    assert often.sum() == 3000
    assert often.min() > 35
    assert often.max() < 90, "the mean is 60, the standard deviation 7"
    assert set(from_triples(path, WANTED, keep=4, seed=7)[0]["q1"]) < set(draws[7])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["q1\tp1\tn1", "q1\tn1"], "line 2: not `query<TAB>positive<TAB>negative`"),
        (["q1\tp1\tn1", "", "q1\tp1\tn1"], "line 2"),
        (["q1\tp1\t"], "line 1"),
        (["q1\tn1\tn2", "q2\tz\tn2"], "no positive in it is relevant for its query here"),
        (["a\tb\tc", "d\te\tf"], "nothing in it is about queries and documents of this collection"),
    ],
)
def test_a_file_that_is_no_triples_is_refused_with_its_line(tmp_path, lines, words):
    with pytest.raises(EncoreError, match=words) as caught:
        from_triples(write(tmp_path / "t.tsv", lines), WANTED, keep=3, seed=0)
    assert "\n" not in str(caught.value)


def test_a_file_that_was_cut_is_refused(tmp_path):
    path = write(tmp_path / "t.tsv.gz", ["q1\tp1\tn1"] * 5000)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(EncoreError, match="cannot be read"):
        from_triples(path, WANTED, keep=3, seed=0)


def scored(**scores):
    return [{"pid": pid, "ce-score": score} for pid, score in scores.items()]


def systems(qid="q1", pos=None, **neg):
    return json.dumps({"qid": qid, "pos": scored(p1=9.0) if pos is None else pos, "neg": neg})


def test_a_negative_is_well_below_the_worst_positive(tmp_path):
    line = systems(pos=scored(p1=9.0, p9=7.0), bm25=scored(n1=4.1, n2=4.0, n3=-5.0), dense=scored(n4=3.9, n5=6.9))
    drawn, _ = from_systems(write(tmp_path / "s.jsonl", [line]), WANTED, margin=3.0, per_system=5)
    assert drawn["q1"] == {"n2": 2, "n3": 3, "n4": 1}
    strict, _ = from_systems(write(tmp_path / "s.jsonl", [line]), WANTED, margin=11.9, per_system=5)
    assert strict["q1"] == {"n3": 3}


def test_each_system_brings_its_first_ones_that_no_other_brought(tmp_path):
    line = systems(a=scored(**{f"n{i}": 0.0 for i in range(9)}), b=scored(**{f"n{i}": 0.0 for i in range(1, 9)}))
    drawn, _ = from_systems(write(tmp_path / "s.jsonl.gz", [line]), WANTED, margin=3.0, per_system=3)
    assert list(drawn["q1"]) == ["n0", "n1", "n2", "n3", "n4", "n5"]


def test_what_is_judged_strange_or_not_asked_for_is_left_out(tmp_path):
    lines = [
        systems(a=scored(p1=0.0, strange=0.0, n1=0.0)),
        systems(qid="q9", a=scored(n1=0.0)),
        systems(qid="q3", a=scored(n1=0.0)),
        systems(qid="q2", pos=[], a=scored(n1=-1e9)),
    ]
    drawn, counts = from_systems(write(tmp_path / "s.jsonl", lines), WANTED, margin=3.0, per_system=3)
    assert drawn == {"q1": {"n1": 3}, "q2": {}}, "no score of a positive, no negative"
    assert (counts.judged, counts.unknown, counts.without) == (1, 2, 1)


def test_ids_may_be_numbers(tmp_path):
    line = json.dumps({"qid": 1, "pos": [{"pid": 2, "ce-score": 5}], "neg": {"a": [{"pid": 3, "ce-score": 1}]}})
    wanted = NegativesRequest({"1"}, {"1": {"2": 1}}, {"2", "3"})
    assert from_systems(write(tmp_path / "s.jsonl", [line]), wanted, margin=3.0, per_system=3)[0] == {"1": {"3": 1}}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([systems(a=scored(n1=0.0)), "{"], "line 2"),
        ([json.dumps({"qid": "q1", "pos": []})], "line 1"),
        ([json.dumps({"qid": "q1", "pos": [], "neg": {"a": ["n1"]}})], "line 1"),
        ([json.dumps(["q1"])], "line 1"),
        ([systems(qid="other", a=scored(n1=0.0))], "nothing in it is about"),
    ],
)
def test_a_file_of_another_form_is_refused_with_its_line(tmp_path, lines, words):
    with pytest.raises(EncoreError, match=words) as caught:
        from_systems(write(tmp_path / "s.jsonl", lines), WANTED, margin=3.0, per_system=3)
    assert "\n" not in str(caught.value)

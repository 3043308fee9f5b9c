"""How a fine-tuning is validated: the pool, its ranking, and the two measures by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from encore.data.collection import Collection, Judgment, write_collection
from encore.data.copies import count_copies
from encore.finetuning.validation import mean_recall, mean_reciprocal_rank
from encore.models import embed
from encore.training.record import write_validations
from tests.support.small_finetuning import Lookup, Texts, pool_of, queries_of, step, validation_of, vectors


def test_reciprocal_rank_by_hand():
    scores = np.array([[0.1, 0.9, 0.5], [0.3, 0.3, 0.3], [0.5, 0.5, 0.9]])
    positive = np.array([[0, 0, 1], [1, 0, 0], [1, 0, 0]], dtype=bool)
    assert mean_reciprocal_rank(scores, positive) == pytest.approx((1 / 2 + 1 / 3 + 1 / 3) / 3), (
        "ties go to later columns"
    )
    eleven = np.arange(11.0)[None, ::-1]
    assert mean_reciprocal_rank(eleven, np.eye(11, dtype=bool)[[9]]) == pytest.approx(1 / 10)
    assert mean_reciprocal_rank(eleven, np.eye(11, dtype=bool)[[10]]) == 0
    two = np.array([[False, True, False, True]])
    assert mean_reciprocal_rank(np.array([[4.0, 1.0, 3.0, 2.0]]), two) == pytest.approx(1 / 3), (
        "the first positive counts"
    )


def test_recall_by_hand():
    scores = np.array([np.arange(12.0), np.arange(12.0), np.zeros(12)])
    positive = np.zeros((3, 12), dtype=bool)
    positive[0, [1, 2]] = True  # ranks 11 and 10
    positive[1, [0]] = True  # rank 12
    positive[2, [2, 11]] = True  # of equal scores later columns are higher: ranks 10 and 1
    assert mean_recall(scores, positive) == pytest.approx((1 / 2 + 0 + 1) / 3)
    assert mean_reciprocal_rank(scores, positive) == pytest.approx((1 / 10 + 0 + 1) / 3)


def test_a_step_learns_from_and_validates_on_its_own_splits(store, tmp_path):
    """Two draws of one collection: each step sees the queries of its own."""
    draws = {"train-1": [0, 1], "valid-1": [2], "test-1": [3], "train-80": [2, 3], "valid-80": [0], "test-80": [1]}
    write_collection(
        tmp_path,
        [{"_id": name, "title": "", "text": "t"} for name in store.passages.names],
        [{"_id": name, "text": "t"} for name in store.queries.names],
        {split: [Judgment(f"q{row}", f"d{row:02d}", 1) for row in rows] for split, rows in draws.items()},
    )
    own = Collection(tmp_path)
    for share, learned, looked_at in (("1", [0, 1], [2]), ("80", [2, 3], [0])):
        wanted = step(negatives="none", train_split=f"train-{share}", valid_split=f"valid-{share}")
        assert [query.row for query in queries_of(wanted, own, store, {})] == learned
        assert pool_of(wanted, own, store).queries.tolist() == looked_at


def test_the_measure_of_a_validation_is_the_steps(store, collection):
    torch.manual_seed(0)
    pool, encoder = pool_of(step(), collection, store), Lookup().float().requires_grad_(False)
    wanted = (step(validation_measure=name) for name in ("RR@10", "R@10"))
    first, second = (validation_of(each, pool, store)(encoder, 10) for each in wanted)
    assert 0 < first < second


def test_pool_holds_the_answers_and_a_stable_sample(store, collection):
    wanted = step(validation_pool=5)
    pool = pool_of(wanted, collection, store)
    assert pool.queries.tolist() == [8, 9, 10, 11]
    assert len(pool.passages) == 9
    assert {8, 9, 10, 11} <= set(pool.passages.tolist())
    assert pool.passages.tolist() == sorted(pool.passages.tolist())
    assert pool.positive.sum(1).tolist() == [1, 1, 1, 1], "the passage of the lower grade is no answer"
    assert pool.passages[pool.positive.argmax(1)].tolist() == [8, 9, 10, 11]
    larger = pool_of(step(validation_pool=8), collection, store)
    assert set(pool.passages.tolist()) <= set(larger.passages.tolist())
    assert len(pool_of(step(validation_queries=2), collection, store).queries) == 2


def test_a_copy_of_an_answer_and_the_querys_document_do_not_count_as_wrong(store, tmp_path):
    """Of the ranking of q8 the first has the text of the answer, the second is the query's own, the third answers."""
    names, wanted = list(store.passages.names), step(validation_pool=30)
    encoder = Lookup().float().requires_grad_(False)
    vectors = embed.embed_texts(encoder, store.passages, np.arange(30), wanted.length)
    asked = embed.embed_texts(encoder, store.queries, np.array([8]), wanted.query_length)
    copy, own, answer = (names[row] for row in np.argsort(-(vectors @ asked[0]))[:3])
    ids = {own: "q8"}
    write_collection(
        tmp_path,
        [{"_id": ids.get(name, name), "title": "", "text": "a" if name in (copy, answer) else name} for name in names],
        [{"_id": name, "text": name} for name in store.queries.names],
        {"train": [Judgment("q0", "d29", 1)], "valid": [Judgment("q8", answer, 1)]},
    )
    count_copies(tmp_path)
    renamed = Texts(list(store.passages), [ids.get(name, name) for name in names])
    here = SimpleNamespace(passages=renamed, queries=store.queries)
    values = {}
    for ignored in ((), ("ignore_copies",), ("ignore_copies", "ignore_identical_ids")):
        pool = pool_of(wanted, Collection(tmp_path), here, **dict.fromkeys(ignored, True))
        values[len(ignored)] = validation_of(wanted, pool, here)(encoder, 0)
    assert values == pytest.approx({0: 1 / 3, 1: 1 / 2, 2: 1})


def test_validation_ranks_the_pool(store, collection):
    """Against a ranking by definition; trained on nothing, so the value is low but not 0 by construction."""
    pool = pool_of(step(), collection, store)
    encoder = Lookup().float().requires_grad_(False)
    wanted = step()
    value = validation_of(wanted, pool, store)(encoder, 10)
    task = SimpleNamespace(store=store)
    queries = vectors(task, encoder, pool.queries, store.queries, wanted.query_length)
    passages = vectors(task, encoder, pool.passages, store.passages, wanted.length)
    expected = []
    for scores, positive in zip(queries @ passages.T, pool.positive, strict=True):
        rank = 1 + (scores > scores[positive].max()).sum()
        expected.append(1 / rank if rank <= 10 else 0)
    assert value == pytest.approx(np.mean(expected))


def test_validations_are_recorded_in_order(tmp_path):
    write_validations(tmp_path / "validation.tsv", [(10, 0.25), (20, 1 / 3)])
    assert (tmp_path / "validation.tsv").read_text() == "step\trr@10\n10\t0.250000\n20\t0.333333\n"
    write_validations(tmp_path / "validation.tsv", [(10, 0.25)], "R@10")
    assert (tmp_path / "validation.tsv").read_text() == "step\tr@10\n10\t0.250000\n"

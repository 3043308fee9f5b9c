"""Batches of one cluster: what is clustered together, and that each query comes once."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from encore.errors import EncoreError
from encore.finetuning.clusters import clustered, order_by_cluster
from encore.models import embed
from encore.training.batches import BatchMaker
from tests.support.small_teachers import dual_task

ROWS = np.arange(40)


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One that puts a query near one of two corners, by its row."""
    corners = np.array([[0, 0], [9, 9]])

    def vectors(encoder: Any, sequences: Any, rows: np.ndarray, length: int) -> np.ndarray:
        assert length == 7
        found = corners[rows % 2] + np.random.default_rng(0).normal(size=(len(rows), 2))
        return found.astype(np.float32)

    monkeypatch.setattr(embed, "embed_texts", vectors)
    return SimpleNamespace(eval=lambda: SimpleNamespace(query_tower=None))


def test_queries_of_near_vectors_have_one_topic(encoder: Any) -> None:
    store: Any = SimpleNamespace(queries=None)
    found = clustered(encoder, store, ROWS, length=7, count=2, chance=0)
    assert sorted(found[:2]) == [0, 1]
    assert all((found[place::2] == found[place]).all() for place in range(2))
    assert np.array_equal(found, clustered(encoder, store, ROWS, length=7, count=2, chance=0)), "a function of the seed"
    with pytest.raises(EncoreError, match="40 training queries are fewer than 41 clusters; lower `clusters`"):
        clustered(encoder, store, ROWS, length=7, count=41, chance=0)


def test_each_query_comes_once_in_batches_of_one_topic_and_what_is_left_is_filled_up() -> None:
    clusters = np.repeat([0, 1, 2, 3], [20, 11, 5, 4])
    orders = [order_by_cluster(clusters, 5, seed=1, epoch=epoch) for epoch in range(30)]
    for rows in orders:
        assert sorted(rows.ravel()) == list(range(40))
        pure = sum(len(set(clusters[row])) == 1 for row in rows)
        assert pure >= 5, "where two clusters meet there is one batch at most, of three meetings"
    assert {clusters[rows[0, 0]] for rows in orders} == {0, 1, 2, 3}, "the first batch may be of any topic"
    assert len({tuple(row) for rows in orders for row in np.sort(rows, axis=1)}) > 30, "an epoch draws its own"
    assert np.array_equal(orders[3], order_by_cluster(clusters, 5, seed=1, epoch=3))


def test_the_last_batch_of_an_epoch_has_no_query_twice() -> None:
    rows = order_by_cluster(np.arange(7) % 2, 3, seed=0, epoch=0)
    assert rows.shape == (3, 3)
    assert all(len(set(row)) == 3 for row in rows)
    assert sum((Counter(rows.ravel()) - Counter(range(7))).values()) == 2
    assert order_by_cluster(np.zeros(3, dtype=int), 8, seed=0, epoch=0).shape == (1, 3)


def test_a_trainings_batches_are_those_of_its_clusters(tmp_path: Any) -> None:
    task = dual_task(tmp_path)
    task.clusters = np.array([0, 1] * 4)
    draws = BatchMaker(task, 4, seed=2).draws()
    found = [next(draws).indices for _ in range(6)]
    assert all(len({index % 2 for index in indices.tolist()}) == 1 for indices in found)
    assert {tuple(sorted(indices)) for indices in found} == {(0, 2, 4, 6), (1, 3, 5, 7)}

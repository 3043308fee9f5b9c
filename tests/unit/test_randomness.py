"""Order and chance are functions of (seed, epoch, index) alone."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from encore.training.randomness import WINDOW, epoch_order, example_batches, generator, number
from encore.training.task import ForwardOutput, Subset, Task


class Drawn(Task):
    """Examples that remember who they are and what was drawn for them."""

    def __init__(self, length: int, sizes: bool = True) -> None:
        self.length, self.sizes = length, sizes
        self.made: list[int] = []

    def __len__(self) -> int:
        return self.length

    def example(self, index: int, rng: np.random.Generator) -> tuple[int, float]:
        self.made.append(index)
        return index, float(rng.random())

    def size(self, example: Any) -> int:
        return int(100 * example[1]) if self.sizes else 0

    def collate(self, examples: list[Any]) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def forward(self, encoder: Any, heads: Any, batch: Any) -> ForwardOutput:
        raise NotImplementedError

    def loss_weights(self, progress: float) -> dict[str, float]:
        raise NotImplementedError

    def flops(self, encoder: Any, batch: Any) -> float:
        raise NotImplementedError


def test_numbers_are_stable_and_differ_by_use() -> None:
    assert number(0, "heads") == 647002037762976733  # a changed derivation would silently change every result
    assert len({number(seed, *key) for seed in range(3) for key in [("heads",), ("order", 0), ("order", 1)]}) == 9


@pytest.mark.parametrize(("length", "batch"), [(10, 4), (8, 4), (3, 8), (1, 1), (1000, 32)])
def test_an_epoch_holds_every_example_and_no_batch_holds_one_twice(length: int, batch: int) -> None:
    rows = epoch_order(length, batch, seed=1, epoch=0)
    assert rows.shape == (-(-length // min(batch, length)), min(batch, length))
    assert set(rows.ravel()) == set(range(length))
    assert all(len(set(row)) == len(row) for row in rows)


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    first = epoch_order(100, 10, seed=1, epoch=0)
    assert np.array_equal(first, epoch_order(100, 10, seed=1, epoch=0))
    assert not np.array_equal(first, epoch_order(100, 10, seed=1, epoch=1))
    assert not np.array_equal(first, epoch_order(100, 10, seed=2, epoch=0))


@pytest.mark.parametrize("length", [7, 40, 1000])
def test_every_epoch_of_batches_holds_every_example_and_none_twice_in_a_batch(length: int) -> None:
    task = Drawn(length)
    per_epoch = len(epoch_order(length, 8, 0, 0))
    for epoch in range(2):
        found = list(islice(example_batches(task, 8, 0, epoch * per_epoch), per_epoch))
        assert {index for batch in found for index, _ in batch.examples} == set(range(length))
        assert all(len({index for index, _ in batch.examples}) == min(8, length) for batch in found)
        assert all(batch.indices == [index for index, _ in batch.examples] for batch in found)
        chance = {index: value for batch in found for index, value in batch.examples}
        expected = {i: generator(0, "example", epoch, i).random() for i in range(length)}
        assert chance == expected  # whatever the batch and whatever was drawn before


def test_batches_go_on_anywhere_as_if_never_stopped() -> None:
    task = Drawn(300)
    whole = list(islice(example_batches(task, 8, 5), 100))
    for start in (1, 7, WINDOW, WINDOW + 1, 37, 38, 75, 99):
        assert list(islice(example_batches(task, 8, 5, start), 100 - start)) == whole[start:]


def test_going_on_makes_no_example_of_an_earlier_window() -> None:
    task = Drawn(8 * WINDOW * 4)
    next(iter(example_batches(task, 8, 0, start=2 * WINDOW)))
    assert len(task.made) == 8 * WINDOW


def test_examples_of_a_subset_keep_their_numbers_and_their_chance() -> None:
    chosen = np.array([2, 3, 5, 7, 11, 13, 17, 19])
    found = list(islice(example_batches(Subset(Drawn(20), chosen), 4, 1), 2))
    assert {index for batch in found for index in batch.indices} == set(chosen.tolist())
    for index, example in [pair for batch in found for pair in zip(*batch, strict=True)]:
        assert example == (index, generator(1, "example", 0, index).random())


def test_examples_of_like_size_share_a_batch() -> None:
    def spread(task: Drawn) -> float:
        found = list(islice(example_batches(task, 8, 0), WINDOW))
        return float(np.mean([np.ptp([100 * value for _, value in batch.examples]) for batch in found]))

    assert spread(Drawn(8 * WINDOW * 2)) < 10 < 60 < spread(Drawn(8 * WINDOW * 2, sizes=False))


def test_batches_of_a_window_are_not_in_the_order_of_their_sizes() -> None:
    means = [
        np.mean([value for _, value in batch.examples])
        for batch in islice(example_batches(Drawn(8 * WINDOW * 2), 8, 0), WINDOW)
    ]
    assert abs(np.corrcoef(means, np.arange(WINDOW))[0, 1]) < 0.6

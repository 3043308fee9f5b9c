"""Batches are functions of (seed, step) alone, whoever makes them."""

import os
import signal
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest

from encore import objectives
from encore.errors import EncoreError
from encore.models.memory import MicroBatch, PartSize
from encore.training.batches import WINDOW, Batch, BatchMaker
from encore.training.distributed import ProcessGroup
from encore.training.randomness import epoch_order, generator
from encore.training.task import ForwardOutput, Task


class Drawn(Task):
    """Examples that remember who they are and what was drawn for them, and are sorted by it."""

    def __init__(self, length: int, sized: bool = True) -> None:
        self.length, self.sized = length, sized
        self.made: list[int] = []

    def __len__(self) -> int:
        return self.length

    def example(self, index: int, rng: np.random.Generator) -> tuple[int, float]:
        self.made.append(index)
        return index, float(rng.random())

    def sizes(self, indices: np.ndarray, chance: Callable[[int], np.random.Generator]) -> np.ndarray:
        scale = 100 if self.sized else 0
        return np.array([int(scale * chance(index).random()) for index in indices.tolist()])

    def collate(self, examples: list[Any]) -> dict[str, np.ndarray]:
        return {
            "numbers": np.array([number for number, _ in examples]),
            "drawn": np.array([value for _, value in examples]),
        }

    def forward(self, encoder: Any, heads: Any, batch: Any) -> ForwardOutput:
        raise NotImplementedError

    def loss_weights(self, progress: float) -> dict[str, float]:
        raise NotImplementedError

    def flops(self, encoder: Any, batch: Any) -> float:
        raise NotImplementedError


class Contrasted(Drawn):
    """The same as each other's negatives; two that are neighbours on disk have one size, as texts of an article do."""

    def sizes(self, indices: np.ndarray, chance: Callable[[int], np.random.Generator]) -> np.ndarray:
        return indices // 2

    def batch_loss(self, embeddings: Any) -> Any:
        raise NotImplementedError


WHOLE = MicroBatch(PartSize(1000))


def taken(
    task: Task, batch: int, seed: int, count: int, start: int = 0, train_on: np.ndarray | None = None, **group: int
) -> list[Batch]:
    """Some batches of one process, or of another of several."""
    maker = BatchMaker(task, batch, seed, ProcessGroup(**group), train_on)
    return list(islice(maker.batches(start, WHOLE), count))


def numbers(batch: Batch) -> list[int]:
    """Of the examples that were made for a batch."""
    return [number for part in batch.parts for number in part.arrays["numbers"].tolist()]


def drawn(batch: Batch) -> list[float]:
    """What was drawn for these."""
    return [value for part in batch.parts for value in part.arrays["drawn"].tolist()]


def alike(one: list[Batch], other: list[Batch]) -> bool:
    """Whether batches are the same, dropout included."""
    keys = [[[(part.chance, part.examples) for part in batch.parts] for batch in batches] for batches in (one, other)]
    same = [numbers(a) == numbers(b) and drawn(a) == drawn(b) for a, b in zip(one, other, strict=True)]
    return keys[0] == keys[1] and all(same)


@pytest.mark.parametrize("length", [7, 40, 1000])
def test_every_epoch_of_batches_holds_every_example_and_none_twice_in_a_batch(length: int) -> None:
    per_epoch = len(epoch_order(length, 8, 0, 0))
    for epoch in range(2):
        found = taken(Drawn(length), 8, 0, per_epoch, epoch * per_epoch)
        assert {index for batch in found for index in numbers(batch)} == set(range(length))
        assert all(len(set(numbers(batch))) == min(8, length) for batch in found)
        assert all(batch.draw.indices.tolist() == numbers(batch) for batch in found)
        assert [batch.draw.step for batch in found] == list(range(epoch * per_epoch, (epoch + 1) * per_epoch))
        chance = dict(pair for batch in found for pair in zip(numbers(batch), drawn(batch), strict=True))
        expected = {i: generator(0, "example", epoch, i).random() for i in range(length)}
        assert chance == expected  # whatever the batch and whatever was drawn before


@pytest.mark.parametrize("task", [Drawn(300), Contrasted(300)])
def test_batches_go_on_anywhere_as_if_never_stopped(task: Task) -> None:
    whole = taken(task, 8, 5, 100)
    for start in (1, 7, WINDOW, WINDOW + 1, 37, 38, 75, 99):
        assert alike(taken(task, 8, 5, 100 - start, start), whole[start:])


def test_only_examples_of_the_batch_are_made() -> None:
    task = Drawn(8 * WINDOW * 4)
    taken(task, 8, 0, 1, start=2 * WINDOW + 3)
    assert len(task.made) == 8


def test_some_examples_of_a_task_keep_their_numbers_and_their_chance() -> None:
    chosen = np.array([2, 3, 5, 7, 11, 13, 17, 19])
    found = taken(Drawn(20), 4, 1, 2, train_on=chosen)
    assert {index for batch in found for index in numbers(batch)} == set(chosen.tolist())
    for index, value in [pair for batch in found for pair in zip(numbers(batch), drawn(batch), strict=True)]:
        assert value == generator(1, "example", 0, index).random()


def test_examples_of_like_size_share_a_batch() -> None:
    def spread(task: Drawn) -> float:
        return float(np.mean([np.ptp(100 * np.array(drawn(batch))) for batch in taken(task, 8, 0, WINDOW)]))

    assert spread(Drawn(8 * WINDOW * 2)) < 10 < 60 < spread(Drawn(8 * WINDOW * 2, sized=False))


def test_batches_of_a_window_are_not_in_the_order_of_their_sizes() -> None:
    means = [np.mean(drawn(batch)) for batch in taken(Drawn(8 * WINDOW * 2), 8, 0, WINDOW)]
    assert abs(np.corrcoef(means, np.arange(WINDOW))[0, 1]) < 0.6


# Examples that are each other's negatives


def pairs(found: list[Batch], others: Callable[[np.ndarray], np.ndarray]) -> int:
    """How often an example and the one that belongs to it are in one batch; each pair counts twice."""
    return sum(int(np.isin(others(batch.draw.indices), batch.draw.indices).sum()) for batch in found)


def test_neighbours_on_disk_meet_in_a_batch_no_more_often_than_by_chance() -> None:
    count, batch, epochs = 8 * WINDOW * 2, 8, 40
    found = taken(Contrasted(count), batch, 0, epochs * count // batch)
    met = pairs(found, lambda indices: indices ^ 1) / 2
    expected = epochs * count / 2 * (batch - 1) / (count - 1)
    assert abs(met - expected) < 4 * np.sqrt(expected)
    assert pairs(taken(Drawn(count), batch, 0, count // batch), lambda indices: indices) == count  # what `pairs` counts


def test_contrasted_examples_of_one_size_share_no_batch_and_each_batch_is_sorted() -> None:
    count = 8 * WINDOW * 2
    found = taken(Contrasted(count), 8, 0, count // 8)
    spreads = [np.std(batch.draw.sizes) / (count / 2) for batch in found]
    assert np.mean(spreads) == pytest.approx(1 / np.sqrt(12), rel=0.1)  # a uniform distribution's, as over all examples
    assert all((np.diff(batch.draw.sizes) >= 0).all() for batch in found)


def written_in(kind: type[Task], method: str) -> type:
    """The class whose text defines a method of an objective."""
    return next(each for each in kind.__mro__ if method in vars(each))


@pytest.mark.parametrize("name", objectives.names())
def test_objectives_contrast_examples_where_they_have_a_loss_of_the_batch(name: str) -> None:
    kind = objectives.load(name)
    assert object.__new__(kind).has_contrast == (written_in(kind, "batch_loss") is not Task)


def test_the_papers_contrasts_have_one() -> None:
    """An objective that is added later does not change that; the test above asks its class."""
    with_contrast = {name for name in objectives.names() if object.__new__(objectives.load(name)).has_contrast}
    assert with_contrast >= {"bfs", "cocondenser", "costa", "cpdae", "ict", "ict_bfs_wlp", "simcse", "wlp"}
    assert not with_contrast & {"mlm", "enhanced", "bow", "condenser", "simlm", "seed"}


# Several processes


@pytest.mark.parametrize("batch", [8, 7])
def test_processes_share_each_batch_and_make_no_example_of_another(batch: int) -> None:
    whole, tasks = taken(Drawn(100), batch, 3, 20), [Drawn(100) for _ in range(3)]
    shares = [taken(task, batch, 3, 20, rank=rank, size=3) for rank, task in enumerate(tasks)]
    for place, each in enumerate(whole):
        assert [numbers(share[place]) for share in shares] == [numbers(each)[rank::3] for rank in range(3)]
    assert [len(task.made) for task in tasks] == [sum(len(numbers(each)) for each in share) for share in shares]


def test_of_a_sorted_batch_no_process_has_the_longest_examples() -> None:
    shares = [taken(Drawn(8 * WINDOW), 8, 0, WINDOW, rank=rank, size=2) for rank in range(2)]
    longest = [np.mean([max(share.sizes) for share in each]) for each in shares]
    assert longest[0] <= longest[1] < longest[0] + 2  # of 100


# Workers


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("start", [0, WINDOW + 5])
def test_workers_make_the_same_batches(workers: int, start: int) -> None:
    maker = BatchMaker(Drawn(300), 8, 5)
    made = maker.batches(start, WHOLE, workers)
    found = list(islice(made, 90))
    made.close()
    assert alike(found, taken(Drawn(300), 8, 5, 90, start))


def test_workers_follow_a_smaller_size_of_parts() -> None:
    micro_batch = MicroBatch(PartSize(8))
    made = BatchMaker(Drawn(8 * WINDOW * 20), 8, 0).batches(0, micro_batch, 1)
    assert next(made).size == PartSize(8)
    micro_batch.size = PartSize(8, 200)
    later = list(islice(made, WINDOW * 8))[-1]
    made.close()
    assert later.size == PartSize(8, 200)
    assert max(part.examples * max(later.sizes) for part in later.parts) <= 200


def test_an_error_of_a_worker_is_the_tasks_own() -> None:
    class Broken(Drawn):
        def example(self, index: int, rng: np.random.Generator) -> tuple[int, float]:
            raise EncoreError("text 3 is damaged")

    with pytest.raises(EncoreError, match=r"^text 3 is damaged$"):
        next(BatchMaker(Broken(20), 4, 0).batches(0, WHOLE, 1))


def test_a_killed_worker_is_said_in_one_line() -> None:
    class Killed(Drawn):
        def example(self, index: int, rng: np.random.Generator) -> tuple[int, float]:
            os.kill(os.getpid(), signal.SIGKILL)
            return 0, 0.0

    with pytest.raises(EncoreError, match=r"^a worker process was killed, perhaps because it ran out of memory"):
        next(BatchMaker(Killed(20), 4, 0).batches(0, WHOLE, 1))

"""Examples that are held out: few, the same for every seed, never trained on, watched without a trace."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from encore import objectives
from encore.models.memory import MicroBatch, PartSize
from encore.training import held_out
from encore.training.checkpoint import Resume
from encore.training.gradients import TrainingModels
from encore.training.loop import train
from encore.training.randomness import generator
from encore.training.task import Task
from tests.support import small_store
from tests.support.small_objective import encoder, heads_of, make
from tests.support.small_training import NUMERICS, STEP, InterruptionError, equal, interrupt_after
from tests.support.whole_loss import whole_loss


class Numbers(Task):
    """Examples that are numbers."""

    forward = collate = weights = flops = None  # type: ignore[assignment]

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def example(self, index: int, rng: np.random.Generator) -> int:
        return index


Numbers.__abstractmethods__ = frozenset()


@pytest.mark.parametrize(
    ("length", "share", "count"),
    [(1000, 0.02, 20), (51, 0.02, 1), (51, 0.001, 1), (50, 0.02, 0), (1000, 0.0, 0), (100_000, 0.02, 256)],
)
def test_a_share_is_held_out_and_the_rest_is_trained_on(length: int, share: float, count: int) -> None:
    train_on, watched = held_out.hold_out(Numbers(length), share)
    out = set() if watched is None else set(watched.tolist())
    assert len(out) == count
    assert train_on.tolist() == [index for index in range(length) if index not in out]


def test_which_are_held_out_depends_on_their_numbers_alone_and_not_on_their_order() -> None:
    few, many = (set(held_out.hold_out(Numbers(length), 0.1)[1].tolist()) for length in (1000, 1100))
    assert len(few & many) > 80  # the least hashes of the first thousand are mostly those of all
    chosen = held_out.hold_out(Numbers(10_000), 0.02)[1]
    assert abs(chosen.mean() - 5000) < 800
    assert np.array_equal(chosen, np.sort(chosen))


def trained(state: Path, points: int | None, **fields: Any) -> tuple[Any, dict[str, Tensor], set[int]]:
    """A training watched at so many points, or not at all; and the examples that it made."""
    step = objectives.fields({**STEP, "objective": "costa", "steps": 12, "min_tokens": 8, **fields})
    task, model = make("costa", small_store.random_store(64), min_tokens=8), encoder(dropout=0.1)
    heads, made, original = heads_of(task, model), set(), task.example

    def example(index: int, rng: np.random.Generator) -> Any:
        made.add(index)
        return original(index, rng)

    train_on, watched = held_out.hold_out(task, 0.1)
    assert watched is not None
    task.example = example
    given = {"train_on": train_on, "watched": watched if points else None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(held_out, "POINTS", points or 1)
        done = train(task, model, heads, step, 0, Resume(state, 0), NUMERICS, **given)
    return done, nn.ModuleDict({"encoder": model, "heads": heads}).state_dict(), made


@pytest.mark.slow
def test_watching_changes_nothing_that_is_learned(tmp_path: Path) -> None:
    unwatched, weights, made = trained(tmp_path / "none", None)
    assert unwatched.held_out == []
    _, watched = held_out.hold_out(make("costa", small_store.random_store(64), min_tokens=8), 0.1)
    assert watched is not None
    assert not made & set(watched.tolist())
    for points in (1, 5):
        done, again, _ = trained(tmp_path / str(points), points)
        assert equal(weights, again)
        assert done.losses == unwatched.losses
        assert len(done.held_out) == points + 1
        assert (done.held_out[0].step, done.held_out[-1].step) == (0, 12)
        assert done.held_out[0].terms.keys() == {"loss", "mlm", "gwc"}


@pytest.mark.slow
def test_an_interruption_leaves_the_same_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, _, _ = trained(tmp_path / "whole", 5)
    interrupt_after(7, monkeypatch)
    with pytest.raises(InterruptionError):
        trained(tmp_path / "cut", 5)
    assert trained(tmp_path / "cut", 5)[0] == whole


def test_the_losses_are_means_over_batches_of_the_steps_size() -> None:
    task, model = make("ict"), encoder()
    models = TrainingModels(task, model, heads_of(task, model), torch.device("cpu"), NUMERICS)
    order = generator(0, "held out", "order").permutation(len(task)).tolist()
    examples = [task.example(index, generator(0, "held out", index)) for index in order]
    sizes, losses = [], []
    for first in range(0, len(examples), 10):
        batch = task.collate(examples[first : first + 10])
        sizes.append(len(batch["kind"]))
        terms = whole_loss(task, model, models.heads, {name: torch.from_numpy(array) for name, array in batch.items()})
        losses.append(float(terms["contrast"].detach()))
    assert len(sizes) > 2
    whole, every = MicroBatch(PartSize(10)), np.arange(len(task))
    found = held_out.held_out_losses(models, every, 10, whole)
    assert found["contrast"] == pytest.approx(np.average(losses, weights=sizes))
    assert held_out.held_out_losses(models, every, 10, MicroBatch(PartSize(3))) == pytest.approx(found)
    assert held_out.held_out_losses(models, every, 10, whole) == found

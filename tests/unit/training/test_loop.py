"""The loop: it learns, resumes to the same bytes, keeps the best weights, and stops when the loss breaks down."""

import itertools
import math
from pathlib import Path
from typing import Any
from unittest.mock import ANY, Mock

import numpy as np
import pytest
import torch
from torch import nn

from encore import objectives
from encore.errors import EncoreError
from encore.models.encoder import Encoder
from encore.models.memory import MicroBatch, PartSize
from encore.training import loop, machine, record
from encore.training.batches import BatchMaker
from encore.training.checkpoint import Resume
from encore.training.loop import train
from encore.training.optimiser import AdamW
from encore.training.record import CurvePoint, Trained, write_curve
from encore.training.task import ForwardOutput, Task
from tests.support import small_objective, small_store
from tests.support.small_training import (
    NUMERICS,
    STEP,
    InterruptionError,
    encoder,
    equal,
    interrupt_after,
    run,
    step_of,
)

# Learning


@pytest.mark.parametrize("name", small_objective.each("mlm", "ict"))
def test_the_loss_falls_on_sixty_four_texts(name: str, tmp_path: Path) -> None:
    fields = {"min_tokens": 8} if name in ("mlm", "bow", "costa") else small_objective.SMALL.get(name, {})
    trained, _ = run(
        tmp_path, name, steps=45, batch=16, learning_rate=1e-2, schedule="constant", model=encoder(0.0), **fields
    )
    first, last = (
        np.mean([point.terms["loss"] for point in part]) for part in (trained.losses[:5], trained.losses[-5:])
    )
    assert last < 0.96 * first


def test_equal_runs_end_with_equal_bytes_and_other_seeds_do_not(tmp_path: Path) -> None:
    (first, weights), (second, again) = (run(tmp_path / name, "ict", steps=8) for name in "ab")
    assert equal(weights, again)
    assert first == second
    assert not equal(weights, run(tmp_path / "c", "ict", steps=8, temperature=0.2)[1])


@pytest.mark.parametrize(("device", "given", "used"), [("cpu", 0, 0), ("cpu", 3, 3), ("cuda", 0, 1), ("cuda", 3, 3)])
def test_a_gpu_has_its_batches_made_by_another_process(device: str, given: int, used: int) -> None:
    maker = Mock(batches=Mock(return_value=(batch for batch in ())))
    assert not list(loop._coming(maker, 5, MicroBatch(PartSize(8)), given, torch.device(device)))
    assert maker.batches.call_args.args == (5, ANY, used)


def test_a_training_whose_batches_workers_make_ends_with_the_same_bytes(tmp_path: Path) -> None:
    (alone, weights), (helped, again) = (run(tmp_path / str(count), steps=8, workers=count) for count in (0, 2))
    assert equal(weights, again)
    assert alone == helped


def test_the_record_counts_steps_examples_and_operations(tmp_path: Path) -> None:
    trained, _ = run(tmp_path, steps=7)
    assert (trained.steps, trained.examples) == (7, 56)
    assert [point.step for point in trained.losses] == list(range(1, 8))
    step = objectives.fields({**STEP, "objective": "ict"})
    task, model = objectives.load("ict")(step, small_store.random_store()), encoder()
    made = itertools.islice(BatchMaker(task, 8, 0).batches(0, MicroBatch(PartSize(8))), 7)
    assert trained.flops == pytest.approx(sum(task.flops(model, batch.parts[0].arrays) for batch in made))


def test_matrices_decay_and_vectors_do_not() -> None:
    model = encoder()
    decay = {name: AdamW(model, 0.01).decay(name) for name, _ in model.named_parameters()}
    vectors = {name for name in decay if name.endswith("bias") or "LayerNorm" in name}
    assert decay == {name: 0.0 if name in vectors else 0.01 for name in decay}


def test_the_optimiser_takes_the_steps_of_torchs() -> None:
    ours, theirs = encoder(), encoder()
    own = AdamW(ours, 0.01)
    groups = [
        {"params": [p for p in theirs.parameters() if p.ndim > 1], "weight_decay": 0.01},
        {"params": [p for p in theirs.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    reference = torch.optim.AdamW(groups, lr=0.1, fused=True)
    for number in range(5):
        for parameters in (ours.parameters(), theirs.parameters()):
            torch.manual_seed(number)
            for parameter in parameters:
                parameter.grad = torch.randn_like(parameter)
        own.step(0.1)
        reference.step()
    assert equal(ours.state_dict(), theirs.state_dict())


# Validation


def test_the_best_weights_are_kept_the_earliest_among_equals(tmp_path: Path) -> None:
    scores = {4: 0.1, 8: 0.7, 12: 0.7, 16: 0.3, 18: 0.2}
    seen = {}

    def validate(model: Encoder, step: int) -> float:
        assert not model.training
        assert not torch.is_grad_enabled()
        seen[step] = {name: value.clone() for name, value in model.state_dict().items()}
        return scores[step]

    model = encoder()
    trained, _ = run(tmp_path, steps=18, validate=validate, validate_every=4, model=model)
    assert trained.validations == list(scores.items())
    assert trained.best_step == 8
    kept = {"best_step": 8, "validations": 5, "equal_validations": 2}
    assert {name: trained.results[name] for name in kept} == kept
    assert equal(model.state_dict(), seen[8])
    assert not equal(model.state_dict(), seen[18])


@pytest.mark.slow
def test_validation_does_not_change_what_is_learned(tmp_path: Path) -> None:
    def validate(model: Encoder, step: int) -> float:
        torch.rand(step)  # a careless validation
        return float(step)

    assert equal(run(tmp_path / "a")[1], run(tmp_path / "b", validate=validate, validate_every=3)[1])


@pytest.mark.slow
def test_the_best_weights_survive_an_interruption(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def validate(model: Encoder, step: int) -> float:
        return -abs(step - 6)

    options: dict[str, Any] = {"steps": 18, "validate": validate, "validate_every": 3}
    whole, weights = run(tmp_path / "whole", **options)
    interrupt_after(13, monkeypatch)
    with pytest.raises(InterruptionError):
        run(tmp_path / "cut", seconds=0, **options)
    resumed, again = run(tmp_path / "cut", seconds=0, **options)
    assert whole.best_step == resumed.best_step == 6
    assert resumed == whole
    assert equal(weights, again)


# Breaking down


class Explodes(Task):
    """A task whose loss becomes infinite at some step."""

    def __len__(self) -> int:
        return 9

    def example(self, index: int, rng: np.random.Generator) -> int:
        return index

    def collate(self, examples: list[int]) -> dict[str, np.ndarray]:
        return {"ids": np.full((1, 4), 5)}

    def forward(self, encoder: Encoder, heads: nn.ModuleDict, batch: Any) -> ForwardOutput:
        return ForwardOutput({"part": encoder(batch["ids"], None).square().mean()}, {})

    def loss_weights(self, progress: float) -> dict[str, float]:
        return {"part": math.inf if progress >= 0.5 else 1.0}

    def flops(self, encoder: Encoder, batch: Any) -> float:
        return 1.0


def test_a_loss_that_is_not_finite_stops_the_training_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    message = (
        r"broke down at step 6 \(loss inf, part [0-9.]+, gradient norm (inf|nan)\) on examples ([0-9], ){8}\.\.\. \(9 "
    )
    with pytest.raises(EncoreError, match=message) as raised:
        train(Explodes(), encoder(), nn.ModuleDict(), step_of(steps=10, batch=9), 0, Resume(tmp_path, 0), NUMERICS)
    named = str(raised.value).split("on examples ")[1].split(", ...")[0]
    assert len(set(named.split(", "))) == 8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000000004.pt", "step-000000005.pt"]


def test_an_unknown_precision_is_refused() -> None:
    with pytest.raises(EncoreError, match="precision 'fp8' is unknown; use one of fp32, tf32, bf16"):
        machine.prepare({"precision": "fp8", "threads": 1})


# Records


def test_the_curve_is_a_table_of_its_terms(tmp_path: Path) -> None:
    write_curve(
        tmp_path / "losses.tsv",
        [CurvePoint(1, {"loss": 1.5, "mlm": 0.1234567}), CurvePoint(9, {"loss": 1e-9, "mlm": 2})],
    )
    assert (tmp_path / "losses.tsv").read_text() == "step\tloss\tmlm\n1\t1.5\t0.123457\n9\t1e-09\t2\n"


def test_a_curve_has_about_a_hundred_points() -> None:
    trained = Trained()
    for _ in range(1234):
        trained.count({"loss": 0.0}, 1, 1.0, 1234)
    assert 90 <= len(trained.losses) <= 102
    assert trained.losses[0].step == 1
    assert trained.losses[-1].step == 1234
    assert math.isclose(trained.flops, 1234)


def test_a_slow_training_tells_its_rate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 100.0])
    monkeypatch.setattr(record.time, "monotonic", lambda: next(clock))
    record.TrainingProgress(0, 1).step(1, {"loss": 1.0}, 32)
    assert "step 1/1  loss 1.0000  0.32 examples/s  0 s left" in capsys.readouterr().out

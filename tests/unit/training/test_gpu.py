"""Training on a GPU: it learns what the CPU learns, in parts, packed, out of memory, gone on with, in half precision.

Where there is no GPU, all of it runs on a simulated one, in fewer steps.
"""

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import mean, stdev
from typing import Any
from unittest import mock
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity

from encore import objectives
from encore.errors import EncoreError
from encore.models import encoder as encoders
from encore.models.memory import PartSize
from encore.models.packing import Packing, Rectangle
from encore.models.transfer import to_device
from encore.objectives.mlm import Mlm
from encore.training import checkpoint, loop, machine, vocabulary_loss
from encore.training.batches import BatchMaker, BatchPart
from encore.training.checkpoint import Resume
from encore.training.gradients import TrainingModels
from encore.training.loop import train
from encore.training.optimiser import AdamW
from encore.training.randomness import generator
from encore.training.record import Trained
from encore.training.task import ForwardOutput
from tests.support import small_objective
from tests.support.simulated_gpu import simulated_gpu
from tests.support.small_training import InterruptionError, interrupt_after

STEPS = {"real": 20, "simulated": 4}
SAME = 0.01  # at most between two trainings that differ by rounding, of how far they went; see below
ALL = [name for name in objectives.names() if name != "simcse"]  # whose dropout is chance
DECODERS = ["autoencoding", "autoregression", "enhanced", "seed", "cpdae"]
EARLY = 0.05  # at most on a simulated one, where rounding is a larger share of fewer steps
LARGER = {"layers": 4, "hidden": 128, "intermediate": 512}  # so that memory goes to texts, not to weights
SEEDS = 24  # of dropout
ALIKE = 0.999  # of packed and padded gradients at least, their cosine; two tokens too many in one text cost more
Weights = dict[str, Tensor]


def without_gpu() -> Any:
    """Inside, torch is told that there is no GPU."""
    return mock.patch.object(torch.cuda, "is_available", return_value=False)


@cache
def task_of(name: str, steps: int, batch: int) -> Any:
    """An objective; what it prepares is made on the processor, so that all devices learn from the same."""
    with without_gpu():
        return small_objective.make(name, steps=steps, batch=batch)


def models_of(name: str, **shape: Any) -> tuple[Any, nn.ModuleDict]:
    """The encoder and the heads that every training of an objective starts from."""
    encoder = small_objective.encoder(**shape)
    torch.manual_seed(0)
    return encoder, task_of(name, 1, 8).heads(encoder)


def weights_of(encoder: nn.Module, heads: nn.Module) -> Weights:
    return {key: value.detach().cpu().clone() for key, value in {**encoder.state_dict(), **heads.state_dict()}.items()}


def trained(
    name: str,
    folder: Path,
    steps: int,
    numerics: dict[str, Any] | None = None,
    shape: dict[str, Any] | None = None,
    **given: Any,
) -> Weights:
    """The weights after a few steps on sixteen texts, on the device that there is."""
    task = task_of(name, steps, 8)
    encoder, heads = models_of(name, **(shape or {}))
    resume = Resume(folder, given.pop("seconds", 120.0), given.pop("workers", 0))
    given = {"train_on": np.arange(min(len(task), 16)), **given}
    train(task, encoder, heads, task.fields, 0, resume, {"precision": "fp32", "threads": 1} | (numerics or {}), **given)
    return weights_of(encoder, heads)


def apart(name: str, one: Weights, other: Weights, shape: dict[str, Any] | None = None) -> float:
    """The distance of two trainings' ends, over that of the first from the common start.

    AdamW makes steps of rounding where a gradient is all but zero, so single weights may be a whole step apart.
    Starts that differ by 3e-6 of each weight end 3e-5 to 3e-3 apart.
    """
    assert one.keys() == other.keys()
    start = weights_of(*models_of(name, **(shape or {})))
    return _distance(one, other) / _distance(one, start)


def _distance(one: Weights, other: Weights) -> float:
    return float(sum((one[key].double() - other[key].double()).square().sum() for key in one)) ** 0.5


def on(names: list[str], *simulated: str) -> Any:
    """A test of each of these objectives on a real GPU, and of some on a simulated one."""
    real = [pytest.param(name, "real", marks=pytest.mark.gpu) for name in names]
    cases = [*real, *(pytest.param(name, "simulated", marks=pytest.mark.slow) for name in simulated)]
    return pytest.mark.parametrize(("name", "gpu"), cases, indirect=["gpu"])


# The same end


@on(ALL, "mlm", "cocondenser", "prop", "seed")
def test_a_training_is_that_of_the_cpu(name: str, gpu: str, tmp_path: Path) -> None:
    on_gpu = trained(name, tmp_path / "gpu", STEPS[gpu])
    with without_gpu():
        on_cpu = trained(name, tmp_path / "cpu", STEPS[gpu])
    assert apart(name, on_cpu, on_gpu) < (SAME if gpu == "real" else EARLY)


@on(["mlm", "enhanced", "seed"], "mlm")
def test_a_vocabulary_in_many_blocks_of_positions_is_learned_as_in_one(
    name: str, gpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(name, tmp_path / "whole", STEPS[gpu])
    monkeypatch.setattr(vocabulary_loss, "positions_at_once", lambda vocabulary: 8)
    assert apart(name, whole, trained(name, tmp_path / "blocks", STEPS[gpu])) < SAME


@pytest.mark.parametrize("gpu", ["simulated", pytest.param("real", marks=pytest.mark.gpu)], indirect=True)
@pytest.mark.usefixtures("gpu")
def test_losses_are_read_when_the_next_step_is_launched_and_before_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    launch, read, save = AdamW.step, loop.Taken.finite, checkpoint.save_checkpoint
    monkeypatch.setattr(AdamW, "step", lambda *given: seen.append("launch") or launch(*given))
    monkeypatch.setattr(loop.Taken, "finite", lambda taken: seen.append(f"read {taken.step}") or read(taken))
    monkeypatch.setattr(checkpoint, "save_checkpoint", lambda *given: seen.append(f"save {given[2]}") or save(*given))
    monkeypatch.setattr(checkpoint.Due, "__call__", Mock(side_effect=[False, False, True, False, False]))
    trained("mlm", tmp_path, 5)
    assert seen == [
        *("launch", "launch", "read 1", "launch", "read 2", "read 3", "save 3"),
        *("launch", "launch", "read 4", "read 5"),
    ]


@pytest.mark.parametrize("gpu", ["simulated", pytest.param("real", marks=pytest.mark.gpu)], indirect=True)
@pytest.mark.usefixtures("gpu")
def test_a_loss_that_is_read_late_names_its_own_step_and_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, drawn = task_of("mlm", 5, 8), list[Any]()
    weights, make = task.loss_weights, BatchMaker.make
    steps = iter(range(1, 6))

    def coming(maker: BatchMaker, *_: Any) -> Iterator[Any]:
        for draw in maker.draws():
            drawn.append(draw)
            yield make(maker, draw, PartSize(8))

    late = {"mlm": math.inf}
    monkeypatch.setattr(task, "loss_weights", lambda progress: weights(progress) if next(steps) < 3 else late)
    monkeypatch.setattr(loop, "_coming", coming)
    with pytest.raises(EncoreError, match=r"broke down at step 3 \(loss inf") as raised:
        trained("mlm", tmp_path, 5)
    assert len(drawn) == 4  # the next step was launched
    assert f"examples {', '.join(map(str, drawn[2].indices.tolist()))} (8 in all)" in str(raised.value)


@pytest.mark.parametrize("name", small_objective.each("mlm", "ict"))
def test_a_step_waits_for_the_device_once(name: str, tmp_path: Path) -> None:
    with simulated_gpu() as gpu:
        trained(name, tmp_path / "short", 2, numerics={"precision": "bf16"})
        short = Counter(gpu.waits)
        gpu.waits.clear()
        ended = trained(name, tmp_path / "long", 5, numerics={"precision": "bf16"})
    assert all(value.isfinite().all() for value in ended.values())
    more = gpu.waits - short
    assert more == {line: 3 for line in more if line == "models/transfer.py: self._copied.synchronize()"}
    assert len(more) == 1


@pytest.mark.gpu
def test_a_real_gpu_packs_and_reads_texts_without_a_wait() -> None:
    """CUDA itself says where the host would wait, which the simulated one counts by a list of operations."""
    device = machine.prepare({"precision": "bf16"})
    encoder = small_objective.encoder().eval().to(device)
    mask = torch.arange(12) < torch.tensor([[12], [5], [3]])
    ids = torch.where(mask, 7, 0).pin_memory()
    with torch.no_grad(), machine.precision({"precision": "bf16"}, device):
        expected = encoder.embed(ids.to(device), mask)  # which loads kernels
        torch.cuda.set_sync_debug_mode("error")
        try:
            found = encoder.embed(to_device(ids, device), mask)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(found, expected)


def test_workers_change_nothing_but_time(gpu: str, tmp_path: Path) -> None:
    alone, helped = (trained("mlm", tmp_path / str(workers), STEPS[gpu], workers=workers) for workers in (0, 2))
    assert apart("mlm", alone, helped) < SAME


@on(["ict", "costa"], "costa")
def test_gradient_caching_learns_what_the_whole_batch_does(name: str, gpu: str, tmp_path: Path) -> None:
    whole = trained(name, tmp_path / "whole", STEPS[gpu])
    parts = trained(name, tmp_path / "parts", STEPS[gpu], numerics={"micro_batch": 3})
    assert apart(name, whole, parts) < (SAME if gpu == "real" else EARLY)


@pytest.mark.slow
def test_an_interrupted_training_ends_as_a_whole_one(
    gpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps, shape = STEPS[gpu], {"dropout": 0.1}
    whole = trained("costa", tmp_path / "whole", steps, shape=shape)
    interrupt_after(steps // 2, monkeypatch)
    with pytest.raises(InterruptionError):
        trained("costa", tmp_path / "cut", steps, shape=shape, seconds=0)
    resumed = trained("costa", tmp_path / "cut", steps, shape=shape)
    assert f"resuming after step {steps // 2}" in capsys.readouterr().out
    assert apart("costa", whole, resumed, shape) < SAME


# Memory


@pytest.mark.slow
def test_memory_that_runs_out_changes_nothing_but_the_parts(
    gpu: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a GPU it really runs out: the allocator may have no more than 60 % of what the whole batch took."""
    whole, expected, bytes_taken = large_batch(gpu, tmp_path / "whole")
    assert whole.micro_batch_tokens is None
    if gpu == "real":
        total = torch.cuda.get_device_properties(0).total_memory
        monkeypatch.setattr(machine, "leave_room", lambda device: _limit(0.6 * bytes_taken / total))
    else:
        monkeypatch.setattr(Mlm, "forward", _narrow)
    try:
        done, found, _ = large_batch(gpu, tmp_path / "little")
    finally:
        if gpu == "real":
            _limit(1.0)
    assert done.micro_batch_tokens
    assert f"out of memory; continuing with {done.micro_batch_tokens} tokens at a time" in capsys.readouterr().out
    assert apart("mlm", expected, found, LARGER) < SAME


def large_batch(gpu: str, folder: Path) -> tuple[Trained, Weights, int]:
    """Two steps on all texts at once; the record, the weights, and the bytes of the GPU's memory at most."""
    if gpu == "real":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    task = task_of("mlm", 2, 512 if gpu == "real" else 16)
    encoder, heads = models_of("mlm", **LARGER)
    numerics, again = {"precision": "fp32", "threads": 1}, np.resize(np.arange(len(task)), 512)  # more than there are
    done = train(task, encoder, heads, task.fields, 0, Resume(folder), numerics, train_on=again)
    taken = torch.cuda.max_memory_allocated() if gpu == "real" else 0
    return done, weights_of(encoder, heads), taken


def _limit(share: float) -> None:
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(share)


def _narrow(task: Mlm, encoder: Any, heads: Any, batch: dict[str, Tensor], forward: Any = Mlm.forward) -> ForwardOutput:
    """As ``Mlm.forward``, where there is memory for ten texts only."""
    if len(batch["mask"]) > 10:
        raise torch.OutOfMemoryError("too much")
    return forward(task, encoder, heads, batch)


# Half precision


@pytest.mark.parametrize("dropout", [0.1, pytest.param(0.0, marks=pytest.mark.gpu)])
@on(["mlm", "simcse", "costa", *DECODERS], "mlm", "simcse", *DECODERS)
def test_half_precision_trains_backwards_too(name: str, dropout: float, gpu: str, tmp_path: Path) -> None:
    """On a GPU by FlashAttention, texts packed."""
    start = weights_of(*models_of(name, dropout=dropout))
    ended = trained(name, tmp_path, STEPS[gpu], numerics={"precision": "bf16"}, shape={"dropout": dropout})
    assert all(value.isfinite().all() for value in ended.values())
    assert any(not torch.equal(ended[key], value) for key, value in start.items())


@on(DECODERS, "autoregression", "enhanced", "seed")
def test_decoders_in_half_precision_learn_what_they_learn_in_single(name: str, gpu: str, tmp_path: Path) -> None:
    single, half = (
        trained(name, tmp_path / precision, STEPS[gpu], numerics={"precision": precision})
        for precision in ("fp32", "bf16")
    )
    assert apart(name, single, half) < 0.1


@pytest.mark.parametrize("name", ["mlm", *DECODERS])
def test_packed_texts_have_the_loss_and_the_gradient_of_padded_ones(name: str, gpu: str) -> None:
    (packed, along), (padded, across) = (one_pass(name, layout) for layout in (Packing, Rectangle))
    assert packed == pytest.approx(padded, rel=2e-3)
    assert cosine_similarity(along, across, dim=0) > ALIKE
    assert float(along.norm()) == pytest.approx(float(across.norm()), rel=0.02)


@pytest.mark.slow
def test_dropout_of_packed_texts_is_that_of_padded_ones_in_the_mean(gpu: str) -> None:
    found = {}
    for layout in (Packing, Rectangle):
        found[layout] = [one_pass("mlm", layout, 0.1, seed)[0] for seed in range(SEEDS)]
        assert one_pass("mlm", layout, 0.1, 3)[0] == pytest.approx(found[layout][3], rel=1e-5)
        assert stdev(found[layout]) > 1e-4
    error = (sum(stdev(losses) ** 2 for losses in found.values()) / SEEDS) ** 0.5
    assert abs(mean(found[Packing]) - mean(found[Rectangle])) < 4 * error


def one_pass(
    name: str, layout: type[Packing] | type[Rectangle], dropout: float = 0.0, seed: int = 0
) -> tuple[float, Tensor]:
    """The loss of a ragged batch in bf16 with texts packed or padded, and the gradient of what asks and is asked [N].

    Args:
        seed: of dropout.
    """
    task = task_of(name, 1, 8)
    device = machine.prepare(numerics := {"precision": "bf16", "threads": 1})
    encoder, heads = (lively(each).to(device).train() for each in models_of(name, dropout=dropout))
    arrays = task.collate([task.example(row, generator(0, "example", 0, row)) for row in range(8)])
    assert any(key.endswith("mask") and not array.all() for key, array in arrays.items()), "nothing to pack"
    models = TrainingModels(task, encoder, heads, device, numerics)

    def chosen(mask: Tensor | None, device: torch.device) -> Packing | Rectangle:
        return Rectangle(None) if mask is None else layout(to_device(mask, device))

    with mock.patch.object(encoders, "layout", chosen):
        output = models.run(BatchPart(arrays, 8, seed))
        terms = output.losses | task.batch_loss(output.embeddings)
        loss = sum(weight * terms[term] for term, weight in task.loss_weights(0.5).items() if term in terms)
        loss.backward()
    asking = [value for key, value in encoder.named_parameters() if ".self.query." in key or ".self.key." in key]
    return loss.item(), torch.cat([value.grad.float().flatten() for value in asking])


@torch.no_grad()
def lively(module: nn.Module) -> nn.Module:
    """The module with matrices ten times as large, so that texts look where they look for a reason."""
    for parameter in module.parameters():
        if parameter.ndim > 1:
            parameter.mul_(10)
    return module

"""Training on a GPU against the same training on the CPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import small_objective
import torch
from torch import Tensor

from encore import objectives
from encore.training.loop import train
from encore.training.task import Subset

STEPS = 20


def trained(
    name: str, folder: Path, workers: int = 0, precision: str = "fp32", dropout: float = 0.0
) -> dict[str, Tensor]:
    """The weights after a few steps on the device that there is."""
    task = small_objective.make(name, steps=STEPS, batch=8)
    encoder = small_objective.encoder(dropout=dropout)
    torch.manual_seed(0)
    heads = task.heads(encoder)
    numerics = {"precision": precision, "threads": 1}
    few = Subset(task, np.arange(min(len(task), 16)))
    train(few, encoder, heads, task.fields, 0, folder, numerics, workers=workers)
    return {key: value.detach().cpu() for key, value in {**encoder.state_dict(), **heads.state_dict()}.items()}


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in objectives.names() if name != "simcse"])  # whose dropout is chance
def test_twenty_steps_are_those_of_the_cpu(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu = trained(name, tmp_path / "gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    on_cpu = trained(name, tmp_path / "cpu")
    assert on_gpu.keys() == on_cpu.keys()
    for key, value in on_cpu.items():
        torch.testing.assert_close(on_gpu[key], value, atol=2e-3, rtol=0, msg=lambda text, key=key: f"{key}: {text}")


@pytest.mark.gpu
@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("name", ["mlm", "simcse", "costa", "enhanced"])
def test_half_precision_trains_backwards_too(name: str, dropout: float, tmp_path: Path) -> None:
    """By the attention of variable length without dropout, and by nested tensors with it."""
    start = small_objective.encoder(dropout=dropout).state_dict()
    ended = trained(name, tmp_path, precision="bf16", dropout=dropout)
    assert all(value.isfinite().all() for value in ended.values())
    assert any(not torch.equal(ended[key], value) for key, value in start.items())


@pytest.mark.gpu
def test_workers_change_nothing_but_time(tmp_path: Path) -> None:
    alone, helped = (trained("mlm", tmp_path / str(workers), workers) for workers in (0, 2))
    for key, value in alone.items():
        torch.testing.assert_close(helped[key], value, atol=2e-3, rtol=0, msg=lambda text, key=key: f"{key}: {text}")


def test_a_training_repeats_itself_where_there_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above compares is a training: it moves the weights, and the same way each time."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    start = {key: value.clone() for key, value in small_objective.encoder().state_dict().items()}
    once, again = trained("mlm", tmp_path / "once"), trained("mlm", tmp_path / "again")
    assert all(torch.equal(once[key], again[key]) for key in once)
    assert any(not torch.equal(once[key], start[key]) for key in start)

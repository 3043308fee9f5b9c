"""Training on a GPU against the same training on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_objective
import torch
from torch import Tensor

from encore import objectives
from encore.training.loop import train
from encore.training.task import Subset

STEPS = 20


def trained(name: str, folder: Path, workers: int = 0, **fields: Any) -> dict[str, Tensor]:
    """The weights after a few steps on the device that there is."""
    task = small_objective.make(name, steps=STEPS, batch=8, **fields)
    encoder = small_objective.encoder()
    torch.manual_seed(0)
    heads = task.heads(encoder)
    numerics = {"precision": "fp32", "threads": 1}
    few = Subset(task, np.arange(min(len(task), 16)))
    train(few, encoder, heads, task.fields, 0, folder, numerics, workers=workers)
    return {key: value.detach().cpu() for key, value in {**encoder.state_dict(), **heads.state_dict()}.items()}


@pytest.mark.gpu
@pytest.mark.parametrize("name", objectives.names())
def test_twenty_steps_are_those_of_the_cpu(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_gpu = trained(name, tmp_path / "gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    on_cpu = trained(name, tmp_path / "cpu")
    assert on_gpu.keys() == on_cpu.keys()
    for key, value in on_cpu.items():
        torch.testing.assert_close(on_gpu[key], value, atol=2e-3, rtol=0, msg=lambda text, key=key: f"{key}: {text}")


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

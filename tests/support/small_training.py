"""Trainings of a few steps on made-up articles."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from encore import objectives
from encore.config.entries import Step
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder
from encore.models.heads import initialise
from encore.training import checkpoint
from encore.training.checkpoint import Resume
from encore.training.loop import train
from tests.support import small_objective, small_store

NUMERICS = {"precision": "fp32", "threads": 1}
STEP = {
    "kind": "pretrain",
    "collection": "made-up",
    "steps": 30,
    "batch": 8,
    "learning_rate": 1e-3,
    "length": 48,
    "query_length": 24,
    "weight_decay": 0.01,
    "source": "a test",
}


def encoder(dropout: float = 0.1, **fields: Any) -> Encoder:
    torch.manual_seed(0)
    shape = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "max_length": 64, **fields}
    return initialise(Encoder(EncoderConfig(vocabulary=len(small_store.PIECES), dropout=dropout, **shape)))


def run(state: Path, name: str = "ict", articles: int = 16, model: Encoder | None = None, **fields: Any) -> Any:
    """Train an objective; gives the record and all weights."""
    resume = Resume(state, fields.pop("seconds", 120.0), fields.pop("workers", 0))
    arguments = {key: fields.pop(key) for key in ("validate", "validate_every") if key in fields}
    step = objectives.fields({**STEP, "objective": name, **fields})
    store = small_store.random_store(articles)
    task = objectives.load(name)(step, store, small_objective.prepared(name, step, store))
    model = model or encoder()
    torch.manual_seed(1)
    heads = task.heads(model)
    trained = train(task, model, heads, step, 0, resume, NUMERICS, **arguments)
    return trained, nn.ModuleDict({"encoder": model, "heads": heads}).state_dict()


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def step_of(**fields: Any) -> Step:
    return Step(**{**{key: value for key, value in STEP.items() if key != "kind"}, **fields})


class InterruptionError(Exception):
    """An interruption."""


def interrupt_after(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a training that saves a checkpoint of this step end there, once."""
    original, ended = checkpoint.save_checkpoint, list[int]()

    def save(folder: Path, run: str, number: int, content: Any) -> None:
        original(folder, run, number, content)
        if number == step and not ended:
            ended.append(number)
            raise InterruptionError

    monkeypatch.setattr(checkpoint, "save_checkpoint", save)

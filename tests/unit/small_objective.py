"""Objectives on small stores and a small encoder, for tests."""

from __future__ import annotations

from typing import Any

import small_store
import torch
from torch import nn

from encore import objectives
from encore.modeling.encoder import Encoder
from encore.modeling.heads import initialise
from encore.modeling.shape import Shape
from encore.training.randomness import generator

STEP = {
    "kind": "pretrain",
    "collection": "made-up",
    "steps": 10,
    "batch": 8,
    "learning_rate": 1e-3,
    "length": 48,
    "query_length": 24,
    "source": "a test",
}


def make(name: str, store: Any = None, **fields: Any) -> Any:
    """An objective on a store, texts of any length allowed."""
    if name in ("mlm", "bow", "costa"):
        fields = {"shortest": 1, **fields}
    step = objectives.fields({**STEP, "objective": name, **fields})
    return objectives.load(name)(step, store or small_store.random_store())


def encoder(**fields: Any) -> Encoder:
    torch.manual_seed(0)
    shape = {"layers": 2, "hidden": 32, "heads": 2, "intermediate": 64, "max_length": 64, "dropout": 0.0, **fields}
    return initialise(Encoder(Shape(vocabulary=len(small_store.PIECES), **shape))).eval()


def batch_of(objective: Any, indices: range = range(8), epoch: int = 0) -> tuple[dict, dict[str, torch.Tensor]]:
    arrays = objective.collate([objective.example(i, generator(0, "example", epoch, i)) for i in indices])
    return arrays, {name: torch.from_numpy(array) for name, array in arrays.items()}


def heads_of(objective: Any, model: Encoder) -> nn.ModuleDict:
    torch.manual_seed(1)
    return initialise(objective.heads(model)).eval()

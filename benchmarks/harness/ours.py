"""An objective in Encore's own training loop, step by step."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from encore import objectives
from encore.config.entries import PretrainStep
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.models.encoder import Encoder
from encore.objectives.base import Objective
from encore.training.randomness import generator
from encore.training.task import Arrays, Task, weighted
from harness.setting import Setting, device
from harness.steps import Steps, measured
from harness.timing import Seconds, time_of

STEP = {
    "kind": "pretrain",
    "collection": "made-up",
    "learning_rate": 1e-4,
    "warmup": 0,
    "query_length": 32,
    "source": "the benchmark's own",
}


class Ours:
    """One objective in epochs of ``setting.steps`` batches, with its own copy of the common weights."""

    def __init__(
        self,
        objective: str,
        fields: dict[str, Any],
        setting: Setting,
        store: TokenStore,
        encoder: Encoder,
        head: nn.Module,
        name: str,
    ) -> None:
        self.name, self.setting = name, setting
        self.step = step_of(objective, fields, setting)
        self.task = load(self.step, store)
        self.texts = np.arange(len(self.task))[: setting.steps * setting.batch]
        if len(self.texts) < setting.steps * setting.batch:
            raise EncoreError(f"only {len(self.task)} of the made-up texts can be used")
        self.encoder = copy.deepcopy(encoder)
        torch.manual_seed(0)
        self.heads = self.task.heads(self.encoder)
        if "mlm" in self.heads:
            self.heads["mlm"].load_state_dict(head.state_dict())
        self.turns: list[Steps] = []
        self.data: list[Seconds] = []

    def measure(self) -> None:
        """An epoch that only warms up, and one that counts; and making a batch."""
        given, count = (self.task, self.encoder, self.heads, self.step, self.setting.numerics()), self.setting.steps
        self.turns.append(measured(*given, warm=count, count=count, train_on=self.texts))
        self.data.append(time_of(lambda: self.arrays(len(self.data))))

    def arrays(self, epoch: int = 0) -> Arrays:
        rows = range(self.setting.batch)
        return self.task.collate([self.task.example(row, generator(0, "example", epoch, row)) for row in rows])

    def loss(self, arrays: Arrays) -> float:
        """Of these arrays, with the weights as they are, without dropout."""
        to = device()
        self.encoder.to(to).eval(), self.heads.to(to).eval()
        batch = {name: torch.from_numpy(array).to(to) for name, array in arrays.items()}
        with torch.no_grad():
            return float(whole_loss(self.task, self.encoder, self.heads, batch))

    def best(self) -> Steps:
        """Those of the best turn."""
        return min(self.turns, key=lambda turn: getattr(turn.seconds, self.setting.clock))


def load(step: PretrainStep, store: TokenStore) -> Objective[Any]:
    """The objective, with what it prepares from the texts.

    Raises:
        NotImplementedError: the preparation runs a trained model, of which there is none here.
    """
    kind = objectives.load(step.objective)
    preparation = kind.preparation(step)
    if preparation is None:
        return kind(step, store)
    if preparation.reads_attention:
        raise NotImplementedError(f"{step.objective} prepares its texts with a trained model")
    with tempfile.TemporaryDirectory() as folder:
        preparation.write(store, Path(folder))
        return kind(step, store, Path(folder))


def step_of(objective: str, fields: dict[str, Any], setting: Setting) -> PretrainStep:
    """The step of an objective, its own defaults changed by ``fields``."""
    lengths = {"length": setting.length, "query_length": min(setting.length, 32), "batch": setting.batch, "steps": 1}
    return objectives.fields({**STEP, **lengths, "objective": objective, **fields})


def whole_loss(task: Task, encoder: Encoder, heads: nn.ModuleDict, batch: dict[str, Tensor]) -> Tensor:
    """What the first step of a training minimises on a batch, a scalar."""
    output = task.forward(encoder, heads, batch)
    return weighted(output.losses | task.batch_loss(output.embeddings), task.loss_weights(0.0))

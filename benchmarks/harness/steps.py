"""The steps of a training in Encore's own loop: how long they take, wait for a batch, and take to launch."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from torch import nn

from encore.config.entries import Step
from encore.models.encoder import Encoder
from encore.training import loop
from encore.training.checkpoint import Resume
from encore.training.task import Arrays, Task
from harness import timing
from harness.figures import rounded


class Steps(NamedTuple):
    """Means over the steps of a training.

    ``seconds``: from one batch to the next. ``wait``: of these by the clock on the wall, until the batch was there.
    ``launch``: likewise, until forward and backward pass were called; a GPU may have done little of it then.
    ``flops``: of the model in a step. ``memory``: bytes of the GPU's that were held at most; 0 on a CPU. ``tokens``:
    those that went through the models at once in the end, where memory had run out.
    """

    seconds: timing.Seconds
    wait: float
    launch: float
    flops: float
    memory: float
    tokens: int | None

    def row(self, batch: int, peak: float) -> dict[str, float]:
        """The figures of a table.

        Args:
            batch: samples in a step.
            peak: the device's best, in operations a second.
        """
        seconds = self.seconds.wall
        found = {
            "samples_per_second": rounded(batch / seconds),
            "utilisation": rounded(timing.utilisation(self.flops, seconds, peak)),
            "step_ms": rounded(1000 * seconds),
            "wait_percent": rounded(100 * self.wait / seconds),
            "launch_percent": rounded(100 * self.launch / seconds),
        }
        found |= {"memory_gb": rounded(self.memory / 1e9)} if self.memory else {}
        return found | ({"tokens_at_once": self.tokens} if self.tokens else {})


class Notes:
    """When the training of a task has a batch, and when all of a step is launched.

    The loop asks for the weights of the terms as soon as a batch is there, and for its operations as soon as the
    backward pass was called.
    """

    def __init__(self) -> None:
        self.came: list[timing.Seconds] = []
        self.launched: list[float] = []
        self.operations: list[float] = []

    @contextmanager
    def of(self, task: Task) -> Iterator[None]:
        """Note what the loop asks this task for."""
        own_weights, own_flops = task.loss_weights, task.flops

        def loss_weights(progress: float) -> dict[str, float]:
            self.came.append(timing.clock())
            return own_weights(progress)

        def flops(encoder: Encoder, batch: Arrays) -> float:
            if len(self.launched) < len(self.came):
                self.launched.append(timing.clock().wall)
                self.operations.append(0.0)
            operations = own_flops(encoder, batch)
            self.operations[-1] += operations
            return operations

        with mock.patch.object(task, "loss_weights", loss_weights), mock.patch.object(task, "flops", flops):
            yield


def measured(
    task: Task,
    encoder: Encoder,
    heads: nn.ModuleDict,
    step: Step,
    numerics: dict[str, Any],
    warm: int,
    count: int,
    workers: int = 0,
    train_on: np.ndarray | None = None,
) -> Steps:
    """Train for some steps, of which the first are not counted. Weights are changed in place.

    Args:
        warm: steps that are not counted.
        count: steps that are.
        workers: processes that make batches.
        train_on: the numbers of the examples to train on, ascending; None for all.
    """
    noted, waits = Notes(), list[float]()
    longer = step.model_copy(update={"steps": warm + count + 1})
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with tempfile.TemporaryDirectory() as state, _noting_waits(waits), noted.of(task):
        resume = Resume(Path(state), workers=workers)
        done = loop.train(task, encoder, heads, longer, 0, resume, numerics, train_on=train_on)
    spent = [launched - came.wall for came, launched in zip(noted.came, noted.launched, strict=True)]
    return Steps(
        seconds=(noted.came[-1] - noted.came[warm]) / count,
        wait=mean(waits[warm + 1 : warm + count + 1]),
        launch=mean(spent[warm:-1]),
        flops=mean(noted.operations[warm:-1]),
        memory=float(torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else 0.0,
        tokens=done.micro_batch_tokens,
    )


@contextmanager
def _noting_waits(waits: list[float]) -> Iterator[None]:
    """Inside, the training loop notes the seconds that it waits for each batch."""
    original = loop._coming

    def coming(*given: Any) -> Generator[Any, None, None]:
        with closing(original(*given)) as batches:
            while True:
                begun = timing.clock().wall
                batch = next(batches)
                waits.append(timing.clock().wall - begun)
                yield batch

    with mock.patch.object(loop, "_coming", coming):
        yield

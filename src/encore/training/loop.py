"""The training loop: the one page that every pre-training and every fine-tuning step runs through."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from encore.config import Step
from encore.errors import EncoreError
from encore.modeling.encoder import Encoder
from encore.storage import digest
from encore.training import checkpoint, machine
from encore.training.progress import ROWS, Point, Progress
from encore.training.randomness import batches, number
from encore.training.schedule import rate, total_steps
from encore.training.task import Arrays, Task

Validate = Callable[[Encoder, int], float]
Weights = dict[str, Tensor]


@dataclass
class Trained:
    """What a training did; the encoder and the heads that were given hold its weights."""

    steps: int = 0
    examples: int = 0
    operations: float = 0.0
    losses: list[Point] = field(default_factory=list)
    validations: list[tuple[int, float]] = field(default_factory=list)
    best_step: int | None = None

    def count(self, values: dict[str, float], examples: int, operations: float, total: int) -> None:
        """Note one more step; about ``ROWS`` of the ``total`` steps leave a point of the curve."""
        self.steps += 1
        self.examples += examples
        self.operations += operations
        if self.steps % math.ceil(total / ROWS) == 0 or self.steps in (1, total):
            self.losses.append(Point(self.steps, values))


def train(
    task: Task,
    encoder: Encoder,
    heads: nn.ModuleDict,
    step: Step,
    seed: int,
    state: Path,
    numerics: dict[str, Any],
    validate: Validate | None = None,
    validate_every: int | None = None,
    checkpoint_seconds: float = 120.0,
) -> Trained:
    """Minimise the task's loss; an interrupted training goes on from ``state`` and, on CPU, ends with the same bytes.

    Args:
        state: the folder of checkpoints; left for the caller to remove once the result is safe.
        numerics: ``precision`` (fp32 or bf16) and ``threads``.
        validate: scores the encoder (the more the better) every ``validate_every`` steps and at the end; the result is
            the weights with the best score, the earliest among equals. Without it, the last weights.

    Raises:
        EncoreError: the loss is not finite, or ``state`` belongs to another training.
    """
    device = machine.prepare(numerics)
    model = nn.ModuleDict({"encoder": encoder, "heads": heads}).to(device).train()
    optimiser = _optimiser(model, step)
    total = total_steps(step, len(task))
    run = digest([type(task).__name__, step.model_dump(), len(task), seed, numerics])
    done, best = _restore(checkpoint.load(state, run), model, optimiser)
    progress, saved_at = Progress(done.steps, total), time.monotonic()

    for now, (_, examples) in zip(range(done.steps, total), batches(task, step.batch, seed, done.steps), strict=False):
        arrays = task.collate(examples)
        torch.manual_seed(number(seed, "step", now))  # dropout: a function of the step, so there is no state to save
        with machine.precision(numerics, device):
            terms = task.loss(encoder, heads, _on_device(arrays, device), now / total)
        optimiser.zero_grad(set_to_none=True)
        terms["loss"].backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), step.clip)
        values = _finite(terms, norm, now + 1)
        for group in optimiser.param_groups:
            group["lr"] = rate(step, now, total)
        optimiser.step()

        done.count(values, len(examples), task.operations(encoder, arrays), total)
        progress.step(done.steps, values, len(examples))
        if validate and (done.steps == total or (validate_every and done.steps % validate_every == 0)):
            best = _validate(validate, encoder, model, done, best)
        if time.monotonic() - saved_at >= checkpoint_seconds:
            checkpoint.save(state, run, done.steps, _content(done, best, model, optimiser))
            saved_at = time.monotonic()

    if best is not None:
        model.load_state_dict(best)
    model.eval()
    return done


def _optimiser(model: nn.Module, step: Step) -> torch.optim.AdamW:
    """AdamW; matrices decay, biases and LayerNorm's vectors do not."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [parameter for parameter in parameters if parameter.ndim > 1], "weight_decay": step.weight_decay},
        {"params": [parameter for parameter in parameters if parameter.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=step.learning_rate, fused=True)


def _on_device(arrays: Arrays, device: torch.device) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array).to(device, non_blocking=True) for name, array in arrays.items()}


def _finite(terms: dict[str, Tensor], norm: Tensor, step: int) -> dict[str, float]:
    """The terms as numbers.

    Raises:
        EncoreError: the loss or its gradient is infinite or not a number; the checkpoints stay as they were.
    """
    values = {name: float(value.detach()) for name, value in terms.items()}
    if math.isfinite(values["loss"]) and math.isfinite(float(norm)):
        return values
    shown = ", ".join(f"{name} {value:g}" for name, value in {**values, "gradient norm": float(norm)}.items())
    raise EncoreError(f"training broke down at step {step} ({shown}); lower the learning rate or raise the temperature")


def _validate(validate: Validate, encoder: Encoder, model: nn.Module, done: Trained, best: Weights | None) -> Weights:
    """Score the encoder and give the best weights so far."""
    model.eval()
    with torch.no_grad():
        score = validate(encoder, done.steps)
    model.train()
    better = best is None or score > max(earlier for _, earlier in done.validations)
    done.validations.append((done.steps, score))
    print(f"step {done.steps}  validation {score:.4f}{' (best)' if better else ''}", flush=True)
    if best is not None and not better:
        return best
    done.best_step = done.steps
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def _content(done: Trained, best: Weights | None, model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """All that a later process needs to go on; chance needs nothing, being a function of the step."""
    history = {**vars(done), "losses": [tuple(point) for point in done.losses]}
    return {"done": history, "best": best, "model": model.state_dict(), "optimiser": optimiser.state_dict()}


def _restore(
    saved: dict[str, Any] | None, model: nn.Module, optimiser: torch.optim.Optimizer
) -> tuple[Trained, Weights | None]:
    """Put a checkpoint's weights in place; give the history and the best weights so far, both empty without one."""
    if saved is None:
        return Trained(), None
    model.load_state_dict(saved["model"])
    optimiser.load_state_dict(saved["optimiser"])
    print(f"going on after step {saved['step']}", flush=True)
    history = saved["done"]
    return Trained(**{**history, "losses": [Point(*point) for point in history["losses"]]}), saved["best"]

"""What an objective says of its own batches before there is a text: their arrays, their FLOPs, their texts."""

from __future__ import annotations

from typing import Any

from encore import objectives
from encore.config.run import PretrainStep
from encore.models.config import EncoderConfig
from encore.training.task import Arrays, Task


class EncoderOutline:
    """An encoder that is nothing but its configuration."""

    def __init__(self, config: EncoderConfig) -> None:
        self.config, self.dimension = config, config.dimension


def flops(step: PretrainStep, config: EncoderConfig, length: float, query_length: float) -> float:
    """Floating-point operations of one training step on texts of so many tokens, special ones included."""
    counted: float = _task(step).flops(EncoderOutline(config), batch(step, length, query_length))
    return counted


def batch(step: PretrainStep, length: float, query_length: float) -> Arrays:
    """The arrays of a full batch, by name; they take no memory."""
    arrays: Arrays = _task(step).outline(round(length), round(query_length))
    return arrays


def texts_an_example(step: PretrainStep) -> int:
    """Texts of the greater length that an example brings to a batch."""
    arrays = batch(step, step.length, step.query_length)
    texts = next(arrays[name] for name in ("ids", "document_ids") if name in arrays)
    return max(1, len(texts) // step.batch)


def contrasted(step: PretrainStep) -> bool:
    """Whether a term is over the whole batch."""
    return objectives.load(step.objective).batch_loss is not Task.batch_loss


def _task(step: PretrainStep) -> Any:
    """The objective without texts: it cannot train, but it can count."""
    kind: Any = objectives.load(step.objective)
    task = kind.__new__(kind)
    task.fields = step
    return task

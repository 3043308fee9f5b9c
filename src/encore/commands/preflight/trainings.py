"""How much a training has to do: its operations, steps and texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from encore import objectives
from encore.commands.preflight.lengths import FITTING, TextLengths, packed, sampled
from encore.commands.preflight.sizes import CollectionSize
from encore.config.entries import PretrainStep, Step
from encore.config.finetuning import FinetuneStep
from encore.finetuning.tasks import task_class
from encore.models import flops
from encore.models.config import EncoderConfig
from encore.training.schedule import total_steps
from encore.training.task import quantiles

QUANTILES = (np.arange(16) + 0.5) / 16  # of lengths at which operations are counted


def amounts(step: Step, shape: EncoderConfig, size: CollectionSize, share: float) -> dict[str, float]:
    """``flops``, and ``longest``: tokens of the longest text; of a pre-training ``trained_examples`` too.

    ``uncounted`` if its objective does not count operations.

    Args:
        share: of the judged queries, those that have negatives enough to be learned from.
    """
    steps = int(counts(step, size, share)["steps"])
    if isinstance(step, PretrainStep):
        each, known = pretraining_flops(step, shape, learned(step, size), size.sentence)
        found = {"flops": steps * each, "trained_examples": float(steps * step.batch), "longest": float(step.length)}
        return found if known else found | {"uncounted": 1.0}
    assert isinstance(step, FinetuneStep)
    queries, passages = query_lengths(size, shape, step.query_length), size.passages.read(step.length)
    task = task_of(step)
    each = task.flops(Shape(shape), task.outline(np.sort(queries), passages))
    looks = steps // step.validate_every if step.validate_every else 0
    looked = looks * (step.validation_pool + step.validation_queries) * reading(shape, passages)
    return {"flops": steps * each + looked, "longest": float(step.length)}


def counts(step: Step, size: CollectionSize, share: float) -> dict[str, float]:
    """What the manifest of a training will say: ``steps``, and ``queries`` or ``pieces_per_text``.

    Args:
        share: as for ``amounts``.
    """
    if isinstance(step, PretrainStep):
        texts = learned(step, size)
        return {"steps": total_steps(step, max(1, round(texts.count))), "pieces_per_text": texts.mean}
    assert isinstance(step, FinetuneStep)
    queries = max(1, round(size.topics(step.train_split, step.queries, share)))
    return {"steps": total_steps(step, queries), "queries": queries}


def reading(
    shape: EncoderConfig, lengths: np.ndarray, count: Callable[[EncoderConfig, int, int], float] = flops.forward
) -> float:
    """Operations of reading one text, a mean over lengths in tokens, special ones included.

    ``count``: those of a batch; ``flops.embedding`` if only vectors are made.
    """
    return float(np.mean([count(shape, 1, round(length)) for length in quantiles(lengths, QUANTILES)]))


def query_lengths(size: CollectionSize, shape: EncoderConfig, most: int) -> np.ndarray:
    """Tokens that are read of each query of a sample."""
    read = np.minimum(size.query_lengths + shape.prefix + shape.separator, most)
    return np.full_like(read, most) if shape.augment else read


def learned(step: PretrainStep, size: CollectionSize) -> TextLengths:
    """The texts that a pre-training step learns from: chunks of articles, or passages, those that it skips left out."""
    found = texts(step, size)
    kept = objectives.load(step.objective).learned_share(step, found.lengths)
    lengths = found.lengths[kept > 0] if (kept > 0).any() else found.lengths
    held_out = min(256.0, step.held_out * found.count)
    return TextLengths(max(1.0, found.count * float(kept.mean()) - held_out), sampled(lengths).lengths)


def texts(step: Any, size: CollectionSize) -> TextLengths:
    """The texts that a step, or anything with its fields of packing, makes from a collection."""
    packing = getattr(step, "packing", "section")  # no pair crosses one
    source = size.sections if packing == "section" else size.articles or size.sections
    filled = 1 + size.sentence / 2 / max(step.length - 2, 1) if packing == "overfull" else FITTING
    return packed(source, step.length, filled, getattr(step, "short_texts", 0.0)) if source else size.passages


def pretraining_flops(
    step: PretrainStep, shape: EncoderConfig, texts: TextLengths, sentence: float
) -> tuple[float, bool]:
    """Operations of a mean step as the objective counts them over a full batch, and True if it could.

    An objective whose ``outline`` lacks an array that its ``flops`` reads is counted as the encoder alone.

    Args:
        sentence: tokens of a sentence, of which queries are made.
    """
    task, read = task_of(step), texts.read(step.length)
    query_length = min(round(sentence) + 2, step.query_length)  # sets of words are the objective's
    lengths = [max(3, round(length)) for length in quantiles(read, QUANTILES)]
    try:
        return float(np.mean([task.flops(Shape(shape), task.outline(each, query_length)) for each in lengths])), True
    except (KeyError, AttributeError):
        return flops.TRAINING * step.batch * reading(shape, read), False


def task_of(step: Any) -> Any:
    """The task of a step without texts or queries: it cannot train, but it can count."""
    pretrains = isinstance(step, PretrainStep)
    kind: Any = objectives.load(step.objective) if pretrains else task_class(step)
    task = kind.__new__(kind)
    setattr(task, "fields" if pretrains else "step", step)
    return task


class Shape:
    """An encoder that has only its configuration."""

    def __init__(self, config: EncoderConfig) -> None:
        self.config, self.dimension = config, config.dimension

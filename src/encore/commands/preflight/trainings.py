"""How much a training has to do: its operations, steps and texts, and the GPU memory that it takes, as does reading."""

from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np

from encore import objectives
from encore.commands.preflight.shapes import parameters
from encore.commands.preflight.sizes import FITTING, CollectionSize, TextLengths, packed, sampled
from encore.config.entries import PretrainStep, Step
from encore.config.finetuning import FinetuneStep
from encore.finetuning.tasks import task_class
from encore.models import flops
from encore.models.config import EncoderConfig
from encore.training.schedule import total_steps
from encore.training.task import quantiles
from encore.training.vocabulary_block import positions_at_once

FP32 = 4
STATE = 4  # a parameter, its gradient and AdamW's two moments, each in fp32
TOGETHER = 256  # texts in one forward pass
WIDE = {"fp32": 2.0, "tf32": 2.0, "bf16": 1.4}  # over what a layer keeps in 16 bits throughout
MASKS = 6  # bytes of the masks of dropout, in widths of a token
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
        steps += step.head_warmup
        found = {"flops": steps * each, "trained_examples": float(steps * step.batch), "longest": float(step.length)}
        return found if known else found | {"uncounted": 1.0}
    assert isinstance(step, FinetuneStep)
    queries, passages = query_lengths(size, shape, step.query_length), size.passages.read(step.length)
    task = task_of(step)
    each = task.flops(Shape(shape), task.outline(np.sort(queries), passages))
    if step.negatives == "index":
        each += flops.product(step.batch, shape.dimension, size.passages.count)
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


def reading_memory(shape: EncoderConfig, length: float) -> float:
    """Bytes of reading texts without learning: weights, and a few states of one layer."""
    states = TOGETHER * length * (6 * shape.hidden + 2 * shape.intermediate)
    return FP32 * (parameters(shape) + states)


def fit(step: Step, shape: EncoderConfig, share: int, precision: str, most: float) -> tuple[int, float]:
    """Examples of a training that go through the model at once, halved until they fit, and the bytes that they take.

    Args:
        share: examples of a batch that one process works on.
        most: bytes of the GPU.
    """
    at_once = share
    while True:
        memory = FP32 * STATE * parameters(shape) + activations(step, shape, at_once, precision)
        if memory <= most or at_once == 1:
            return at_once, memory
        at_once = ceil(at_once / 2)


def activations(step: Step, shape: EncoderConfig, examples: int, precision: str) -> float:
    """Bytes that a forward pass on examples of the step's full length leaves for the backward pass.

    A layer keeps about 18 widths and 4 inner widths a token in 16 bits (Korthikanti et al. 2022, section 4.1, without
    the attention matrices, which the fused kernels do not keep), twice that in 32; under autocast some stay in 32.
    Fine-tuning that reads [CLS] alone keeps the last layer's input, keys and values. What a task computes in addition
    to the encoder counts as so many texts more as would take as many operations.
    """
    texts, predicted = _work(step, shape)
    texts, predicted = texts * examples / step.batch, predicted * examples / step.batch
    if shape.architecture == "bow-mlp":
        return texts * (shape.hidden + shape.intermediate) * 12.0
    token = WIDE[precision] * (18 * shape.hidden + 4 * shape.intermediate) + MASKS * shape.hidden * (shape.dropout > 0)
    last = token
    if isinstance(step, FinetuneStep) and step.scorer != "late-interaction" and shape.pooling == "cls":
        last = WIDE[precision] * 6 * shape.hidden
    layers = (shape.layers - 1) * token + last
    return texts * step.length * (layers + 8 * shape.hidden) + _predicting(shape, predicted)


def _predicting(shape: EncoderConfig, pieces: float) -> float:
    """Bytes of a vocabulary head that predicts so many pieces, and of its loss.

    The head keeps three states of each piece, its loss the gradients of the states and of the word embeddings; of
    logits and their softmax there is a block at a time, and of its word embeddings' gradient.
    """
    if not pieces:
        return 0.0
    block = min(pieces, positions_at_once(shape.vocabulary))
    return FP32 * (4 * pieces * shape.hidden + 2 * shape.vocabulary * (shape.hidden + block))


def _work(step: Step, shape: EncoderConfig) -> tuple[float, float]:
    """Texts of full length that would take as many operations as a batch, and the pieces that it predicts."""
    task = task_of(step)
    if isinstance(step, PretrainStep):
        arrays = task.outline(step.length, step.query_length)
    else:
        arrays = task.outline(np.full(1, step.query_length), np.full(1, step.length))
    predicted = sum(len(arrays[name]) for name in ("masked", "decoded") if name in arrays)
    try:
        operations = task.flops(Shape(shape), arrays) / flops.TRAINING - flops.mlm_head(shape, predicted)
    except (KeyError, AttributeError):  # an objective that does not say what its batches hold
        return step.batch, predicted
    return operations / flops.forward(shape, 1, step.length), predicted

"""GPU memory of training and of encoding, and how much of a batch fits."""

from __future__ import annotations

from math import ceil

import numpy as np

from encore.commands.preflight import shapes, trainings
from encore.config.entries import PretrainStep, Step
from encore.config.finetuning import FinetuneStep
from encore.models import flops
from encore.models.config import EncoderConfig
from encore.training.vocabulary_block import positions_at_once

FP32 = 4
STATE = 4  # a parameter, its gradient and AdamW's two moments, each in fp32
TOGETHER = 256  # texts in one forward pass
WIDE = {"fp32": 2.0, "tf32": 2.0, "bf16": 1.4}  # over what a layer keeps in 16 bits throughout
MASKS = 6  # bytes of the masks of dropout, in widths of a token


def reading(shape: EncoderConfig, length: float) -> float:
    """Bytes of reading texts without learning: weights, and a few states of one layer."""
    states = TOGETHER * length * (6 * shape.hidden + 2 * shape.intermediate)
    return FP32 * (shapes.parameters(shape) + states)


def fit(step: Step, shape: EncoderConfig, share: int, precision: str, most: float) -> tuple[int, float]:
    """Examples of a training that go through the model at once, halved until they fit, and the bytes that they take.

    Args:
        share: examples of a batch that one process works on.
        most: bytes of the GPU.
    """
    at_once = share
    while True:
        memory = FP32 * STATE * shapes.parameters(shape) + activations(step, shape, at_once, precision)
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
    task = trainings.task_of(step)
    if isinstance(step, PretrainStep):
        arrays = task.outline(step.length, step.query_length)
    else:
        arrays = task.outline(np.full(1, step.query_length), np.full(1, step.length))
    predicted = sum(len(arrays[name]) for name in ("masked", "decoded") if name in arrays)
    try:
        operations = task.flops(trainings.Shape(shape), arrays) / flops.TRAINING - flops.mlm_head(shape, predicted)
    except (KeyError, AttributeError):  # an objective that does not say what its batches hold
        return step.batch, predicted
    return operations / flops.forward(shape, 1, step.length), predicted

"""GPU memory: what a training or a reading of texts holds there, and how much of a batch fits."""

from __future__ import annotations

from math import ceil

from encore import objectives
from encore.commands.preflight import shapes
from encore.config.entries import PretrainStep, Step
from encore.config.finetuning import FinetuneStep
from encore.models.config import EncoderConfig

FP32 = 4
STATE = 4  # a parameter, its gradient and AdamW's two moments, each in fp32
TOGETHER = 256  # texts in one forward pass
WIDE = {"fp32": 2.0, "bf16": 1.4}  # over what a layer keeps in 16 bits throughout
MASKS = 6  # bytes of the masks of dropout, in widths of a token


def reading(shape: EncoderConfig, length: float) -> float:
    """Bytes of reading texts without learning: weights, and a few states of one layer."""
    states = TOGETHER * length * (6 * shape.hidden + 2 * shape.intermediate)
    return FP32 * (shapes.parameters(shape) + states)


def fit(step: Step, shape: EncoderConfig, share: int, precision: str, most: float) -> tuple[int, float]:
    """Examples of a training that go through the model at once, halved until they fit, and the bytes that they take.

    Args:
        share: examples of a batch that one process works on.
        most: bytes that there are.
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
    the attention matrices, which the fused kernels do not keep), twice that in 32; under autocast some stay in 32. A
    vocabulary head keeps the logits, their softmax and their gradient, at masked places or at all that a decoder sees.
    """
    tokens = examples * _texts(step) * step.length
    if shape.architecture == "bow-mlp":
        return tokens / step.length * (shape.hidden + shape.intermediate) * 12.0
    decoder = hasattr(step, "decoder_weight")
    token = WIDE[precision] * (18 * shape.hidden + 4 * shape.intermediate) + MASKS * shape.hidden * (shape.dropout > 0)
    layers = shape.layers + decoder * getattr(step, "decoder_layers", 1)
    predicted = tokens * (getattr(step, "mask_ratio", 0.0) * bool(getattr(step, "mlm_weight", 1.0)) + decoder)
    return tokens * (layers * token + 8 * shape.hidden) + predicted * shape.vocabulary * 3 * FP32


def _texts(step: Step) -> int:
    """Texts of the greater length that an example brings to a batch."""
    if isinstance(step, FinetuneStep):
        return 1 + step.negatives_per_query
    assert isinstance(step, PretrainStep)
    task = objectives.load(step.objective)
    bare = task.__new__(task)
    bare.fields = step
    arrays = bare.outline(step.length, step.query_length)
    texts = next((arrays[name] for name in ("ids", "document_ids") if name in arrays), None)
    return 1 if texts is None else max(1, len(texts) // step.batch)

"""What a training needs: its operations, the memory of its batch, the bytes of its model and its checkpoints."""

from __future__ import annotations

from math import ceil

import numpy as np

from encore import objectives
from encore.commands.preflight import judged, outlines, shapes
from encore.commands.preflight.cost import Cost, Work
from encore.commands.preflight.lengths import TextLengths, packed, sampled
from encore.commands.preflight.sizes import PIECES, CollectionSize, CollectionSizes
from encore.config.finetuning import FinetuneStep
from encore.config.run import PretrainStep, Step
from encore.models import flops
from encore.models.config import EncoderConfig
from encore.plan.artifact import Artifact
from encore.training.schedule import total_steps

FP32 = 4
STATE = 4  # a parameter, its gradient and AdamW's two moments, each in fp32
KEPT = 2  # checkpoints that are kept (training/checkpoint.py)
QUANTILES = 8  # lengths at which a pre-training step is counted: its batches hold texts of like length
PADDED = 1.3  # tokens of a part of a batch's sentences, of which each is padded to the longest, over their own
WIDE = {"fp32": 2.0, "bf16": 1.4}  # over what a layer keeps in 16 bits throughout
MASKS = 6  # bytes of the masks of dropout, in widths of a token
FORWARD_TWICE = 4 / 3  # gradient caching: a batch in parts that is contrasted runs forward twice


def cost(model: Artifact, sizes: CollectionSizes, processes: int, most: float) -> Cost:
    """A training job.

    Args:
        processes: that share a batch, one a GPU.
        most: bytes of GPU memory; larger batches go through the model in parts, as the training does by itself.
    """
    step, shape = shapes.step_of(model), shapes.shape_of(model)
    size = sizes.of(model.inputs["tokens"].inputs["collection"])
    numerics = model.spec["numerics"]
    if isinstance(step, PretrainStep):
        texts = usable(step, size)
        steps, length = total_steps(step, max(1, round(texts.count))), float(texts.read(step.length).mean())
        each = pretraining(step, shape, texts, size)
    else:
        assert isinstance(step, FinetuneStep)
        steps = total_steps(step, max(1, round(size.topics(step.train_split, step.queries))))
        length = float(size.passages.read(step.length).mean())
        each = judged.training(step, shape, size.query_lengths, size.passages)
    share = ceil(step.batch / processes)
    at_once, memory = fit(step, shape, length, min(numerics.get("micro_batch") or share, share), numerics, most)
    each *= FORWARD_TWICE if at_once < share and contrasted(step) else 1.0
    works = [Work("train", steps * each / processes, shape, at_once * texts_an_example(step), length)]
    works += _looking(step, shape, size, steps)
    weights = shapes.parameters(shape) + shapes.heads(step, shape)
    best = 1 if getattr(step, "validate_every", None) else 0
    notes = (f"{at_once} of {share} examples at once",) if at_once < share else ()
    return Cost(
        works=tuple(works),
        start="torch",
        kept=FP32 * (shapes.parameters(shape) + kept_heads(step, shape)) + 1e6,
        scratch=KEPT * FP32 * weights * (3 + best),
        ram=FP32 * weights * 3 + 200 * size.passages.count * bool(isinstance(step, FinetuneStep)) + 5e7,
        gpu=True,
        gpu_memory=memory,
        processes=processes,
        notes=notes,
    )


def usable(step: PretrainStep, size: CollectionSize) -> TextLengths:
    """The texts that a pre-training step learns from, cut to its length: chunks of sections, or passages."""
    texts = packed(size.sections, step.length) if size.sections else size.passages
    sentences = objectives.load(step.objective).least_sentences * size.sentence
    long_enough = texts.lengths >= max(sentences, getattr(step, "min_tokens", 1))
    short = texts.lengths < getattr(step, "skip_below", 0)
    kept = np.where(short, 1 - getattr(step, "skip_share", 0.8 if short.any() else 0.0), 1.0) * long_enough
    lengths = texts.lengths[kept > 0] if (kept > 0).any() else texts.lengths
    held_out = min(256.0, step.held_out * texts.count)
    return TextLengths(max(1.0, texts.count * float(kept.mean()) - held_out), sampled(lengths).lengths)


def pretraining(step: PretrainStep, shape: EncoderConfig, texts: TextLengths, size: CollectionSize) -> float:
    """Operations of a mean step."""
    words = 3 * getattr(step, "set_size", 0.0)  # of the longest of a batch's word sets
    sentence = min(words * PIECES + 2 if words else PADDED * size.sentence + 2, float(step.query_length))
    taken = (1 - getattr(step, "keep_sentence", 1.0)) * size.sentence  # of a document, since it is the query
    lengths = np.maximum(np.quantile(texts.read(step.length), (np.arange(QUANTILES) + 0.5) / QUANTILES) - taken, 3)
    return float(np.mean([outlines.flops(step, shape, length, sentence) for length in lengths]))


def _looking(step: Step, shape: EncoderConfig, size: CollectionSize, steps: int) -> list[Work]:
    """What is read besides the training itself: validations, and the losses on held-out examples."""
    if isinstance(step, FinetuneStep) and step.validate_every:
        times = ceil(steps / step.validate_every)
        length = float(size.passages.read(step.length).mean())
        each = (step.validation_pool + step.validation_queries) * forward(shape, length)
        return [Work("encode", times * each, shape, 16, length)]
    return []


def texts_an_example(step: Step) -> int:
    """Texts of the greater length that an example brings to a batch."""
    if isinstance(step, FinetuneStep):
        return 1 + step.negatives_per_query
    return outlines.texts_an_example(step) if isinstance(step, PretrainStep) else 1


def contrasted(step: Step) -> bool:
    """Whether a batch in parts is read twice: a contrast wants the vectors of all of it first."""
    if isinstance(step, FinetuneStep):
        return step.scorer == "vector" and step.loss in ("contrastive", "kl-in-batch")
    return isinstance(step, PretrainStep) and outlines.contrasted(step)


def fit(
    step: Step, shape: EncoderConfig, length: float, share: int, numerics: dict[str, object], most: float
) -> tuple[int, float]:
    """Examples that go through the model at once, halved until they fit, and the bytes that they then take."""
    weights = FP32 * STATE * (shapes.parameters(shape) + shapes.heads(step, shape))
    at_once = share
    while True:
        memory = weights + activations(step, shape, at_once, length, str(numerics.get("precision", "fp32")))
        if memory <= most or at_once == 1:
            return at_once, memory
        at_once = ceil(at_once / 2)


def activations(step: Step, shape: EncoderConfig, examples: int, length: float, precision: str) -> float:
    """Bytes that a forward pass leaves for the backward pass.

    A layer keeps about 18 widths and 4 inner widths a token in 16 bits (Korthikanti et al. 2022, section 4.1, without
    the attention matrices, which the fused kernels do not keep), twice that in 32; under autocast some stay in 32. A
    vocabulary head keeps the logits, their softmax and their gradient.
    """
    texts = examples * texts_an_example(step)
    if shape.architecture == "bow-mlp":
        return texts * (shape.hidden + shape.intermediate) * 12.0
    token = WIDE[precision] * (18 * shape.hidden + 4 * shape.intermediate) + MASKS * shape.hidden * (shape.dropout > 0)
    decoded = 1.0 if hasattr(step, "decoder_weight") else 0.0
    layers = shape.layers + decoded * getattr(step, "decoder_layers", 1)
    predicted = texts * length * (getattr(step, "mask_ratio", 0.0) + decoded) if has_vocabulary_head(step) else 0.0
    if isinstance(step, PretrainStep) and objectives.load(step.objective).vocabulary_from_vector:
        predicted += texts
    return texts * length * (layers * token + 8 * shape.hidden) + predicted * shape.vocabulary * 3 * FP32


def has_vocabulary_head(step: Step) -> bool:
    """Whether pieces are predicted."""
    return hasattr(step, "mask_ratio") and bool(getattr(step, "mlm_weight", 1.0))


def kept_heads(step: Step, shape: EncoderConfig) -> int:
    """Parameters that are saved besides the encoder."""
    return 0 if getattr(step, "save_heads", None) == () else shapes.heads(step, shape)


def forward(shape: EncoderConfig, length: float) -> float:
    """Operations of reading one text."""
    return flops.forward(shape, 1, max(1, round(length)))

"""How much a training has to do: its operations, and the tokens that it reads in all its steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from encore import objectives
from encore.commands.preflight.lengths import FITTING, TextLengths, packed, sampled
from encore.commands.preflight.sizes import CollectionSize
from encore.config.entries import PretrainStep, Step
from encore.config.finetuning import FinetuneStep
from encore.models import flops
from encore.models.config import EncoderConfig
from encore.training.schedule import total_steps
from encore.training.task import PARTS

QUANTILES = (np.arange(16) + 0.5) / 16  # of lengths at which operations are counted


def amounts(step: Step, shape: EncoderConfig, size: CollectionSize, share: float) -> dict[str, float]:
    """``flops``, ``trained_tokens``, ``longest`` (tokens of the longest text), ``uncounted`` if nobody did.

    Args:
        share: of the judged queries, those that have negatives enough to be learned from.
    """
    if isinstance(step, PretrainStep):
        return _pretrain(step, shape, size)
    assert isinstance(step, FinetuneStep)
    return _finetune(step, shape, size, share)


def counts(step: Step, size: CollectionSize, share: float) -> dict[str, float]:
    """What the manifest of a training will say: ``steps``, and ``queries`` or ``pieces_per_text``.

    Args:
        share: as for ``amounts``.
    """
    if isinstance(step, PretrainStep):
        texts = usable(step, size)
        return {"steps": total_steps(step, max(1, round(texts.count))), "pieces_per_text": texts.mean}
    assert isinstance(step, FinetuneStep)
    queries = max(1, round(size.topics(step.train_split, step.queries, share)))
    return {"steps": total_steps(step, queries), "queries": queries}


def reading(shape: EncoderConfig, lengths: np.ndarray) -> float:
    """Operations of reading one text, a mean over lengths in tokens, special ones included."""
    return float(np.mean([flops.forward(shape, 1, round(length)) for length in at(lengths, QUANTILES)]))


def at(lengths: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The lengths, of ascending ones, that such shares of all are below; NumPy's quantiles take ten times as long."""
    found: np.ndarray = lengths[np.minimum(shares * len(lengths), len(lengths) - 1).astype(int)]
    return found


def query_lengths(size: CollectionSize, shape: EncoderConfig, most: int) -> np.ndarray:
    """Tokens that are read of each query of a sample."""
    read = np.minimum(size.query_lengths + shape.prefix + shape.separator, most)
    return np.full_like(read, most) if shape.augment else read


def _pretrain(step: PretrainStep, shape: EncoderConfig, size: CollectionSize) -> dict[str, float]:
    texts = usable(step, size)
    steps = total_steps(step, max(1, round(texts.count)))
    length = float(texts.read(step.length).mean())
    each, known = pretraining_flops(step, shape, texts, size.sentence)
    found = {"flops": steps * each, "trained_tokens": steps * step.batch * length, "longest": float(step.length)}
    return found if known else found | {"uncounted": 1.0}


def usable(step: PretrainStep, size: CollectionSize) -> TextLengths:
    """The texts that a pre-training step learns from: chunks of articles, or passages, those that it skips left out."""
    found = texts(step, size)
    long_enough = found.lengths >= getattr(step, "min_tokens", 1)
    kept = np.where(found.lengths < getattr(step, "skip_below", 0), 1 - getattr(step, "skip_share", 0), 1) * long_enough
    lengths = found.lengths[kept > 0] if (kept > 0).any() else found.lengths
    held_out = min(256.0, step.held_out * found.count)
    return TextLengths(max(1.0, found.count * float(kept.mean()) - held_out), sampled(lengths).lengths)


def texts(step: Any, size: CollectionSize) -> TextLengths:
    """The texts that a step, or whatever has its fields of packing, makes of a collection."""
    packing = getattr(step, "packing", "section")  # no pair crosses one
    source = size.sections if packing == "section" else size.articles or size.sections
    filled = 1 + size.sentence / 2 / max(step.length - 2, 1) if packing == "overfull" else FITTING
    return packed(source, step.length, filled, getattr(step, "short_texts", 0.0)) if source else size.passages


def pretraining_flops(
    step: PretrainStep, shape: EncoderConfig, texts: TextLengths, sentence: float
) -> tuple[float, bool]:
    """Operations of a mean step as the objective counts them over a full batch, and whether it could.

    An objective whose ``outline`` lacks an array that its ``flops`` reads is counted as the encoder alone.

    Args:
        sentence: tokens of a sentence, of which queries are made.
    """
    kind: Any = objectives.load(step.objective)
    task = kind.__new__(kind)  # without texts: it cannot train, but it can count
    task.fields = step
    query_length = min(round(sentence) + 2, step.query_length)  # sets of words are the objective's
    lengths = [max(3, round(length)) for length in at(texts.read(step.length), QUANTILES)]
    try:
        return float(np.mean([task.flops(_Shape(shape), task.outline(each, query_length)) for each in lengths])), True
    except (KeyError, AttributeError):
        return flops.TRAINING * step.batch * reading(shape, texts.read(step.length)), False


class _Shape:
    """An encoder that is nothing but its configuration."""

    def __init__(self, config: EncoderConfig) -> None:
        self.config, self.dimension = config, config.dimension


def _finetune(step: FinetuneStep, shape: EncoderConfig, size: CollectionSize, share: float) -> dict[str, float]:
    """A batch's queries are padded to the longest, its passages, sorted, to the longest of their part."""
    steps = int(counts(step, size, share)["steps"])
    examples, passages = steps * step.batch, 1 + step.negatives_per_query
    queries, texts = query_lengths(size, shape, step.query_length), size.passages.read(step.length)
    if step.scorer == "cross-encoder":
        texts, query_flops = texts + float(queries.mean()) - 1, 0.0
    else:
        query_flops = flops.forward(shape, 1, round(at(queries, np.array([1 - 0.5 / step.batch]))[0]))
    ends = np.minimum(np.arange(1, PARTS + 1) / PARTS, 1 - 0.5 / (step.batch * passages))
    padded = [flops.forward(shape, 1, round(length)) for length in at(texts, ends)]
    each = flops.TRAINING * (query_flops + passages * float(np.mean(padded)))
    looks = steps // step.validate_every if step.validate_every else 0
    looked = looks * (step.validation_pool + step.validation_queries) * reading(shape, texts)
    tokens = float(examples * (queries.mean() + passages * texts.mean()))
    return {"flops": examples * each + looked, "trained_tokens": tokens, "longest": float(step.length)}

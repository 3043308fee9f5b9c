"""The arrays of a training batch without their content: what the objectives' own counters of operations look at.

A batch's arrays have a length that follows from the step's fields. Each kind of fields says which arrays it adds;
a step of a kind of its own counts as its nearest ancestor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from encore import objectives
from encore.config.run import PretrainStep
from encore.models.config import EncoderConfig
from encore.objectives import costa, cpdae, simcse
from encore.objectives.parts import decoding, masked_texts, pairs, preference
from encore.training.task import Arrays

VIEWS = 2


class Outline:
    """An encoder that is nothing but a shape."""

    def __init__(self, shape: EncoderConfig) -> None:
        self.config, self.dimension = shape, shape.dimension


def flops(step: PretrainStep, shape: EncoderConfig, length: float, query_length: float) -> float:
    """Floating-point operations of one training step on texts of so many tokens, special ones included."""
    kind: Any = objectives.load(step.objective)
    task = kind.__new__(kind)  # without texts it cannot train, but it can count
    task.fields = step
    counted: float = task.flops(Outline(shape), batch(step, length, query_length))
    return counted


def batch(step: PretrainStep, length: float, query_length: float) -> Arrays:
    """The arrays of a full batch, by name; they take no memory."""
    arrays: Arrays = {}
    for kind in reversed(type(step).__mro__):
        if kind in ADDED:
            arrays |= ADDED[kind](step, round(length), round(query_length))
    return arrays or _masked(step, round(length), 0)


def _of(*shape: float) -> np.ndarray:
    return np.broadcast_to(np.int8(0), tuple(max(1, round(size)) for size in shape))


def _masked(step: Any, length: int, query_length: int) -> Arrays:
    masked = min(getattr(step, "mask_ratio", 0.15) * (length - 2), getattr(step, "max_masked", length))
    return {"ids": _of(step.batch, length), "masked": _of(step.batch * masked)}


def _decoded(step: Any, length: int, query_length: int) -> Arrays:
    """All that follows a token, all but the frame, or the pieces of a second mask."""
    share = getattr(step, "decoder_mask_ratio", 1.0) if step.objective == "autoencoding" else 1.0
    behind = length - 2 if step.objective in ("autoencoding", "enhanced") else length - 1
    return {"decoded": _of(step.batch * share * behind)}


def _spans(step: Any, length: int, query_length: int) -> Arrays:
    return {"drawn": _of(step.batch, step.spans * len(step.granularities))}


def _views(step: Any, length: int, query_length: int) -> Arrays:
    masked = VIEWS * step.batch * step.mask_ratio * (length - 2)
    return {"ids": _of(VIEWS * step.batch, length), "masked": _of(masked)}


def _sets(step: Any, length: int, query_length: int) -> Arrays:
    return {"set_ids": _of(step.batch * 2 * step.pairs, query_length)}


def _pairs(step: Any, length: int, query_length: int) -> Arrays:
    arrays = {"kind": _of(step.batch), "document_ids": _of(step.batch, length)}
    parts = np.array_split(np.arange(step.batch), min(pairs.PARTS, step.batch))
    arrays |= {f"query_ids_{number}": _of(len(part), query_length) for number, part in enumerate(parts)}
    return arrays | {"masked": _of(step.batch * step.mask_ratio * (length - 2))}


def _twice(step: Any, length: int, query_length: int) -> Arrays:
    return {"ids": _of(VIEWS * step.batch, length)}


ADDED: dict[type[PretrainStep], Callable[[Any, int, int], Arrays]] = {
    masked_texts.MaskingFields: _masked,
    decoding.DecodingFields: _decoded,
    costa.CostaFields: _spans,
    cpdae.CpdaeFields: _views,
    preference.PreferenceFields: _sets,
    pairs.PairFields: _pairs,
    simcse.SimcseFields: _twice,
}

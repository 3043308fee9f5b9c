"""Operations of fine-tuning steps in closed form: the tasks of ``finetuning/`` count the same, but import torch."""

from __future__ import annotations

import numpy as np

from encore.commands.preflight.lengths import TextLengths
from encore.config.finetuning import FinetuneStep
from encore.models import flops
from encore.models.config import EncoderConfig

PARTS = 4  # a batch's passages lie in so many parts, each padded to its own longest (finetuning/judged.py)
DRAWS = 4  # batches that are drawn, whose mean is taken


def training(step: FinetuneStep, shape: EncoderConfig, queries: np.ndarray, passages: TextLengths) -> float:
    """Operations of one step, a mean over batches drawn from the lengths of queries and passages.

    Args:
        queries: tokens of a sample of queries, special ones not included.
    """
    return float(np.mean([_batch(step, shape, *drawn) for drawn in draws(step, shape, queries, passages)]))


def draws(
    step: FinetuneStep, shape: EncoderConfig, queries: np.ndarray, passages: TextLengths
) -> list[tuple[np.ndarray, np.ndarray]]:
    """What some batches read: tokens of their queries [B] and of their passages [B, P], special ones included."""
    rng, found = np.random.default_rng(0), []
    special = shape.prefix + shape.separator
    for _ in range(DRAWS):
        read_queries = np.minimum(rng.choice(queries, step.batch) + special, step.query_length)
        read_queries = np.full_like(read_queries, step.query_length) if shape.augment else read_queries
        read = rng.choice(passages.lengths, (step.batch, 1 + step.negatives_per_query)) + special
        found.append((read_queries, np.minimum(read, step.length)))
    return found


def _batch(step: FinetuneStep, shape: EncoderConfig, queries: np.ndarray, passages: np.ndarray) -> float:
    if step.scorer == "cross-encoder":
        return cross_encoder(shape, (queries[:, None] + passages - 1).ravel())
    rows, longest = len(queries), float(np.ceil(queries.max()))
    parts = [(len(part), float(np.ceil(part.max()))) for part in _parts(passages.ravel())]
    forward = sum(flops.forward(shape, count, round(length)) for count, length in [(rows, longest), *parts])
    if step.scorer == "late-interaction":
        tokens = rows * longest + sum(count * length for count, length in parts)
        mapped = flops.product(tokens, shape.hidden, step.token_dimension)
        scores = flops.product(rows * step.query_length, step.token_dimension, passages.size * step.length)
        return flops.TRAINING * (forward + mapped + scores)
    scored = passages.shape[1] if step.loss == "pairwise" else passages.size
    return flops.TRAINING * (forward + flops.product(rows, shape.dimension, scored))


def cross_encoder(shape: EncoderConfig, pairs: np.ndarray) -> float:
    """Operations of a step on pairs of so many tokens each."""
    parts = [(len(part), float(np.ceil(part.max()))) for part in _parts(pairs)]
    forward = sum(flops.forward(shape, count, round(length)) for count, length in parts)
    return flops.TRAINING * (forward + flops.product(pairs.size, shape.hidden, 1))


def _parts(lengths: np.ndarray) -> list[np.ndarray]:
    """As the tasks part a batch: by length, in parts of like size."""
    return np.array_split(np.sort(lengths), min(PARTS, lengths.size))

"""Floating-point operations of models, counted from their shapes: what budgets are compared in.

A multiplication with its addition counts as two, as is usual; only matrix products are counted. Look-ups, softmax,
norms and activations are left out (below 2 % at BERT's shapes). All states are counted, also where none are computed
(padding, on a GPU; the last layer's, where only [CLS] is read), since a budget must not depend on how we compute.
"""

import numpy as np

from encore.models.config import EncoderConfig
from encore.models.inputs import parts_by_length

PRODUCTS = {"none": 0, "linear": 1, "nonlinear": 2}  # of a projector
TRAINING = 3.0  # times the forward pass: a backward pass has two products for each of its products


def parameters(config: EncoderConfig) -> int:
    """Parameters of an encoder, both towers counted."""
    width, inner = config.hidden, config.intermediate
    if config.architecture == "bow-mlp":
        own = config.vocabulary * width + _linear(width, inner) + _linear(inner, config.dimension)
    else:
        embeddings = (config.vocabulary + config.max_length + config.segments + 2) * width
        layer = 4 * _linear(width, width) + _linear(width, inner) + _linear(inner, width) + 4 * width
        head = _linear(width, config.projection_dim) if config.projection_dim else 0
        own = embeddings + config.layers * layer + PRODUCTS[config.projector] * _linear(width, width) + head
    return own * (2 if config.encoders == "separate" else 1)


def _linear(inner: int, outer: int) -> int:
    """A matrix and its bias."""
    return inner * outer + outer


def forward(config: EncoderConfig, batch: float, length: float) -> float:
    """One forward pass of ``batch`` rows padded to ``length`` tokens, with projector and head."""
    if config.architecture == "bow-mlp":
        return product(batch, config.hidden, config.intermediate) + product(
            batch, config.intermediate, config.dimension
        )
    tokens = float(batch * length)
    projections = 4 * product(tokens, config.hidden, config.hidden)
    scores_and_mixing = 2 * product(tokens, config.hidden, length)
    feed_forward = 2 * product(tokens, config.hidden, config.intermediate)
    projector = PRODUCTS[config.projector] * product(batch, config.hidden, config.hidden)
    head = product(batch, config.hidden, config.projection_dim) if config.projection_dim else 0.0
    return config.layers * (projections + scores_and_mixing + feed_forward) + projector + head


def forward_in_parts(config: EncoderConfig, ids: np.ndarray, mask: np.ndarray | None) -> float:
    """One forward pass of texts of unlike length, ids [B, L], as ``packing.in_parts`` runs it.

    Args:
        mask: bool [B, L], true at real tokens; None where only the shape of the ids is known.
    """
    if mask is None:
        return forward(config, *ids.shape)
    return sum(forward(config, len(rows), longest) for rows, longest in parts_by_length(mask))


def embedding(config: EncoderConfig, batch: float, length: float) -> float:
    """The operations of ``forward`` that ``Encoder.embed`` computes: not the states of a last layer that nobody reads.

    For estimates of time; budgets count all.
    """
    if config.pooling != "cls" or config.architecture == "bow-mlp":
        return forward(config, batch, length)
    others = float(batch * (length - 1))  # tokens that are only keys and values
    projections = 2 * product(others, config.hidden, config.hidden)
    scores_and_mixing = 2 * product(others, config.hidden, length)
    feed_forward = 2 * product(others, config.hidden, config.intermediate)
    return forward(config, batch, length) - projections - scores_and_mixing - feed_forward


def mlm_head(config: EncoderConfig, positions: float) -> float:
    """The vocabulary head at so many positions, forward."""
    return product(positions, config.hidden, config.hidden) + product(positions, config.hidden, config.vocabulary)


def product(rows: float, inner: float, columns: float) -> float:
    """A product of matrices [rows, inner] and [inner, columns], such as a batch's scores."""
    return 2.0 * rows * inner * columns

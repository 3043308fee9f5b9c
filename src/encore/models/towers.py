"""Two encoders of one shape: one for passages, one for queries (Chang et al., ICLR'20; DPR)."""

from dataclasses import replace

import torch
from torch import Tensor

from encore.models.bow_mlp import BowMlp
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder

QUERY = "query_encoder."  # how the parameters of the query tower begin


def build_encoder(config: EncoderConfig) -> Encoder:
    """A new encoder of a shape; with separate encoders, that of passages, which holds the one of queries."""
    kind = BowMlp if config.architecture == "bow-mlp" else Encoder
    encoder = kind(config)
    if config.encoders == "separate":
        encoder.query_encoder = kind(replace(config, encoders="shared"))
    return encoder


def separate_encoders(encoder: Encoder) -> Encoder:
    """Two towers, both with the weights of ``encoder``."""
    towers = build_encoder(replace(encoder.config, encoders="separate"))
    own = encoder.state_dict()
    towers.load_state_dict(own | {QUERY + name: tensor for name, tensor in own.items()})
    return towers


def follow(encoder: Encoder, parent: Encoder) -> None:
    """After training: two towers that were one in the ``parent`` stay one if no query was read, as with MLM.

    A tower that embedded nothing has no gradient, so its weights are the parent's to the bit.
    """
    query, before = encoder.query_tower, passage_weights(parent)
    if _equal(before, parent.query_tower) and _equal(before, query):
        query.load_state_dict(passage_weights(encoder))


def passage_weights(encoder: Encoder) -> dict[str, Tensor]:
    """The weights of the passage tower alone."""
    return {name: tensor for name, tensor in encoder.state_dict().items() if not name.startswith(QUERY)}


def _equal(weights: dict[str, Tensor], tower: Encoder) -> bool:
    return all(torch.equal(weights[name], tensor.cpu()) for name, tensor in tower.state_dict().items())

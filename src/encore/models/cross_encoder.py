"""A cross-encoder (Nogueira and Cho 2019): a query and a passage are read as one text, which gets one number."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from encore.models import inputs
from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder, mean
from encore.models.heads import initialise
from encore.models.inputs import Special
from encore.models.precision import at_least_float32

NAME = "cross"  # of the linear map among the modules besides the encoder


def score_head(config: EncoderConfig) -> nn.ModuleDict:
    """The linear map from a pair's state to its score, drawn as BERT's weights are."""
    return nn.ModuleDict({NAME: initialise(nn.Linear(config.hidden, 1))})


def pair_inputs(
    queries: Sequence[np.ndarray], passages: Sequence[np.ndarray], query_length: int, length: int, special: Special
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``[CLS] query [SEP] passage [SEP]`` of as many queries as passages, padded to the longest.

    Args:
        query_length: tokens of a query with its two special tokens; what is longer is cut from the right.
        length: tokens of a passage with its one.

    Returns:
        ids int64 [N, L]; mask bool [N, L]; segments int64 [N, L], 1 from the first token of the passage on.
    """
    wrapped = [inputs.wrap(query, query_length, special) for query in queries]
    joined = [
        np.concatenate([query, passage[: length - 1].astype(np.int64), [special.sep]])
        for query, passage in zip(wrapped, passages, strict=True)
    ]
    ids, mask = inputs.stack(joined, special.pad)
    first = np.array([len(query) for query in wrapped])
    return ids, mask, (mask & (np.arange(ids.shape[1]) >= first[:, None])).astype(np.int64)


def score(encoder: Encoder, linear: nn.Module, ids: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
    """Scores [N] of pairs: the linear map of the state at [CLS], or of the mean of all where the backbone pools so.

    The map is computed in fp32 at least, whatever the encoder ran in: bf16 would tie the scores of like passages.

    Args:
        linear: of ``score_head``, its weight [1, H].
        ids, mask, segments: [N, L], of ``pair_inputs``.
    """
    if encoder.config.pooling == "cls":
        pooled = encoder.representations(ids, mask, segments)
    else:
        pooled = mean(encoder(ids, mask, segments), mask)
    with torch.autocast(pooled.device.type, enabled=False):
        scores: Tensor = linear(at_least_float32(pooled)).squeeze(-1)
    return scores

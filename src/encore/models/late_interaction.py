"""Late interaction (ColBERT: Khattab and Zaharia 2020; TCT-ColBERT, section 3.1): each token has a vector."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encore.models.config import EncoderConfig
from encore.models.encoder import Encoder, content
from encore.models.heads import initialise
from encore.models.precision import at_least_float32

NAME = "late"  # of the linear map among the modules besides the encoder


def token_head(config: EncoderConfig, dimension: int) -> nn.ModuleDict:
    """The linear map from a token's state to its vector, drawn as BERT's weights are; its bias starts at 0."""
    return nn.ModuleDict({NAME: initialise(nn.Linear(config.hidden, dimension))})


def token_vectors(
    encoder: Encoder, linear: nn.Module, ids: Tensor, mask: Tensor, normalised: bool, first: int | None = None
) -> tuple[Tensor, Tensor]:
    """The vectors of texts' tokens, and which of them count.

    Args:
        ids: int64 [B, L].
        mask: bool [B, L], true at real tokens.
        normalised: whether each vector gets length 1.
        first: tokens from [CLS] on that a text is compared by in place of its content (ME-BERT: Luan et al. 2021); L
            is then at most as many.

    Returns:
        float [B, L, D], and bool [B, L]: at padding and at tokens that do not count a vector means nothing.
    """
    vectors = linear(encoder(ids, mask)[:, :first])
    return F.normalize(vectors, dim=-1) if normalised else vectors, counted(ids, encoder.config, first)


def counted(ids: Tensor, config: EncoderConfig, first: int | None = None) -> Tensor:
    """True for tokens of ids [B, L] that a text is compared by, bool [B, L]: its content, or [CLS] without any.

    With ``first``, of the first tokens [B, at most ``first``] all that are not padding.
    """
    if first is not None:
        return ids[:, :first] != config.pad
    found = content(ids, config)
    start = torch.arange(ids.shape[1], device=ids.device) == 0
    return found | (start & ~found.any(dim=1, keepdim=True))


def max_sim(queries: Tensor, counted_queries: Tensor, passages: Tensor, counted_passages: Tensor) -> Tensor:
    """Each query's score of each passage (TCT-ColBERT, Eq. 6).

    ``s_qp = sum_i max_j <q_i, p_j>`` over the tokens ``i`` of the query and ``j`` of the passage that count. TCT's
    released code hides padding by writing -15 over similarities that are exactly zero; here a mask hides it.

    Args:
        queries: [B, I, D], token vectors; in half precision they are compared in single precision all the same.
        counted_queries: [B, I] bool.
        passages: [P, J, D].
        counted_passages: [P, J] bool; every passage has a token that counts.

    Returns:
        [B, P].
    """
    with torch.autocast(queries.device.type, enabled=False):
        similarities = torch.einsum("bid,pjd->bpij", at_least_float32(queries), at_least_float32(passages))
    lowest = torch.finfo(similarities.dtype).min
    best = similarities.masked_fill_(~counted_passages[:, None], lowest).max(dim=-1).values
    return best.masked_fill(~counted_queries[:, None], 0.0).sum(dim=-1)

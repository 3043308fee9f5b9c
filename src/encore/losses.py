"""Every loss of the papers once: formula, shapes, source.

All of them are means over examples, so a weight between two terms does not depend on the batch size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def info_nce(
    queries: Tensor, passages: Tensor, positive: Tensor, temperature: float, ignored: Tensor | None = None
) -> Tensor:
    """Contrast each query with every passage of the batch (Chang et al. 2020, section 3; van den Oord et al. 2018).

    ``loss = mean_i -log( exp(s_ip / t) / sum_j exp(s_ij / t) )`` with ``s = queries @ passages.T`` and
    ``p = positive[i]``; ``j`` runs over the passages that are not ignored for query ``i``.

    Args:
        queries: [B, D]; normalised beforehand where the similarity is the cosine.
        passages: [P, D], own positives, own negatives and those of the other queries alike.
        positive: [B] int64, which passage answers the query.
        ignored: [B, P] bool, passages left out of the sum: other copies of the positive, other right answers.
            A query's own positive always stays in.

    Returns:
        A scalar.
    """
    scores = queries @ passages.T / temperature
    if ignored is not None:
        own = F.one_hot(positive, passages.shape[0]).bool()
        scores = scores.masked_fill(ignored & ~own, float("-inf"))
    return F.cross_entropy(scores, positive)


def sup_con(anchors: Tensor, candidates: Tensor, positive: Tensor, allowed: Tensor, temperature: float) -> Tensor:
    """Supervised contrast with several positives an anchor (Khosla et al. 2020, Eq. 2; COSTA, Eq. 8).

    ``loss = mean_i -(1/n_i) sum_{p in P(i)} log( exp(s_ip / t) / sum_{a in A(i)} exp(s_ia / t) )`` with
    ``s = anchors @ candidates.T`` and ``n_i = |P(i)|``. Anchors without a positive take no part in the mean.

    Args:
        anchors: [N, D]; normalised beforehand where the similarity is the cosine.
        candidates: [M, D], positives and negatives of every anchor, the anchors themselves where they are negatives.
        positive: [N, M] bool, P(i), a subset of ``allowed``.
        allowed: [N, M] bool, A(i): never the anchor itself, never padding.

    Returns:
        A scalar; 0 if no anchor has a positive.
    """
    scores = anchors @ candidates.T / temperature
    # The least number and not -inf: an anchor with nothing allowed must not turn the gradients into NaN.
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    log_share = scores - scores.logsumexp(dim=1, keepdim=True)
    count = positive.sum(dim=1)
    mean = log_share.masked_fill(~positive, 0.0).sum(dim=1) / count.clamp(min=1)
    return -mean.sum() / (count > 0).sum().clamp(min=1)


def masked_lm(logits: Tensor, targets: Tensor, count: Tensor | int | None = None) -> Tensor:
    """Cross-entropy of the masked pieces (Devlin et al. 2019).

    ``loss = -(1/count) sum_m log softmax(logits_m)[targets_m]``

    Args:
        logits: [M, V], the vocabulary head at the M masked positions only.
        targets: [M] int64, the pieces that stood there.
        count: masked positions of the whole effective batch, when this is a part of it; M without.

    Returns:
        A scalar; 0 if nothing was masked.
    """
    total = F.cross_entropy(logits, targets, reduction="sum")
    return total / max(int(targets.numel() if count is None else count), 1)


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy against a distribution (BoW prediction: uniform over the set of the text's pieces).

    ``loss = -(1/B) sum_b sum_v targets_bv log softmax(logits_b)_v``; its least value is the
    entropy of the targets, not 0.

    Args:
        logits: [B, V].
        targets: [B, V], rows that sum to 1.

    Returns:
        A scalar.
    """
    return F.cross_entropy(logits, targets)


def uniform_targets(ids: Tensor, vocabulary: int) -> Tensor:
    """Uniform distributions over sets of pieces, for ``soft_cross_entropy``.

    Args:
        ids: [B, K] int64, distinct within a row, padded with -1.

    Returns:
        [B, V] float32; each row sums to 1, or to 0 where the set is empty.
    """
    present = ids >= 0
    share = present / present.sum(dim=1, keepdim=True).clamp(min=1)
    return torch.zeros(len(ids), vocabulary, device=ids.device).scatter_add_(1, ids.clamp(min=0), share)

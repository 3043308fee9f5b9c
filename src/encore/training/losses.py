"""Every loss of the papers once: formula, shapes, source.

All of them are means over examples, so a weight between two terms does not depend on the batch size.
"""

import math
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from encore.models.precision import at_least_float32
from encore.training.vocabulary_loss import summed_cross_entropy


def info_nce(
    queries: Tensor,
    passages: Tensor,
    positive: Tensor,
    temperature: float,
    ignored: Tensor | None = None,
    log_q: Tensor | None = None,
) -> Tensor:
    """Contrast each query with every passage of the batch (Chang et al. 2020, section 3; van den Oord et al. 2018).

    ``loss = mean_i -log( exp(s_ip / t) / sum_j exp(s_ij / t) )`` with ``s = queries @ passages.T`` and
    ``p = positive[i]``; ``j`` runs over the passages that are not ignored for query ``i``. Sampled softmax takes
    ``s_ij / t - log Q_j`` in place of ``s_ij / t``, so that a passage which is drawn often has no disadvantage.

    Args:
        queries: [B, D]; normalised beforehand where the similarity is the cosine.
        passages: [P, D], own positives, own negatives and those of the other queries alike.
        positive: [B] int64, which passage answers the query.
        ignored: [B, P] bool, passages left out of the sum: other copies of the positive, other right answers.
            A query's own positive always stays in.
        log_q: [P], log Q, where scores are corrected for how probable each passage was to be drawn.

    Returns:
        A scalar.
    """
    return choice(queries @ passages.T / temperature, positive, ignored, log_q)


def choice(scores: Tensor, positive: Tensor, ignored: Tensor | None = None, log_q: Tensor | None = None) -> Tensor:
    """Choose the positive among passages by their scores, however these are made (``info_nce`` of given scores).

    ``loss = mean_i -log( exp(s_ip - log q_p) / sum_j exp(s_ij - log q_j) )``

    Args:
        scores: [B, P], already divided by the temperature.
        positive, ignored, log_q: as for ``info_nce``.

    Returns:
        A scalar.
    """
    if log_q is not None:
        scores = scores - log_q.to(scores.dtype)
    if ignored is not None:
        own = F.one_hot(positive, scores.shape[1]).bool()
        scores = scores.masked_fill(ignored & ~own, float("-inf"))
    return F.cross_entropy(scores, positive)


def pairwise(right: Tensor, wrong: Tensor) -> Tensor:
    """Logistic loss of each positive against each negative of its query (CPDAE, section 4.1.3; Burges et al. 2005).

    ``loss = mean_i mean_j -log sigmoid(s_i+ - s_ij-)``

    Args:
        right: [B], the score of each query's positive.
        wrong: [B, N], the scores of its negatives.

    Returns:
        A scalar; ln 2 where all scores are equal.
    """
    return F.softplus(wrong - right[:, None]).mean()


def pairwise_over_pool(scores: Tensor, positive: Tensor, ignored: Tensor) -> Tensor:
    """The same over all passages of a pool, those of other queries too (STAR: Zhan et al. 2021; its released code).

    ``loss = -(1/n) sum_ij log sigmoid(s_ip - s_ij)`` over the n pairs of a query's positive and a passage ``j`` that is
    neither that nor ignored. So a query counts as often as it has such passages.

    Args:
        scores: [B, P], already divided by the temperature.
        positive: [B] int64, which passage answers the query.
        ignored: [B, P] bool, passages that are not negatives of the query.

    Returns:
        A scalar; 0 if no query has a negative.
    """
    wrong = ~ignored & ~F.one_hot(positive, scores.shape[1]).bool()
    pairs = F.softplus(scores - scores.gather(1, positive[:, None]))
    return pairs.masked_fill(~wrong, 0.0).sum() / wrong.sum().clamp(min=1)


def ranked_pairs(scores: Tensor, right: Tensor, wrong: Tensor, gains: Tensor | None = None) -> Tensor:
    """Logistic loss of each right passage of a ranked list against each wrong one (RankNet, Burges et al. 2005).

    ``loss = mean_i (1/n_i) sum_ab |g_a - g_b| -log sigmoid(s_ia - s_ib)`` over the ``n_i`` pairs of a right passage
    ``a`` and a wrong one ``b``. LTRe (Zhan et al. 2020) takes 1 in place of the difference of gains, ADORE (Zhan et al.
    2021, LambdaLoss) what the reciprocal rank changes by if the two change places: ``g_r = 1/r``.

    Args:
        scores: [B, K], of each query's passages in their order.
        right, wrong: [B, K] bool.
        gains: [K], of a right passage at each place; no gradient reaches it.

    Returns:
        A scalar; queries without a pair count as 0.
    """
    pairs = (right[:, :, None] & wrong[:, None, :]).to(scores.dtype)
    terms = F.softplus(scores[:, None, :] - scores[:, :, None]) * pairs
    if gains is not None:
        terms = terms * (gains[:, None] - gains[None, :]).abs()
    return (terms.sum(dim=(1, 2)) / pairs.sum(dim=(1, 2)).clamp(min=1)).mean()


def pointwise(scores: Tensor) -> Tensor:
    """Each passage for itself, relevant or not (Nogueira and Cho 2019; the cross-encoder of RocketQA).

    ``loss = mean_i mean_j -log sigmoid(s_i0)`` for the positive, 0, and ``-log(1 - sigmoid(s_ij))`` for a negative.

    Args:
        scores: [B, P], logits of a query's positive, first, and of its negatives.

    Returns:
        A scalar; ln 2 where all scores are 0.
    """
    return (F.softplus(scores).sum() - scores[:, 0].sum()) / scores.numel()


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


def masked_lm(states: Tensor, words: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """Cross-entropy of the masked pieces (Devlin et al. 2019).

    ``loss = -(1/M) sum_m log softmax(words @ states_m + bias)[targets_m]``

    Processors compute all logits at once, with the bytes of recorded results; accelerators a block at a time.

    Args:
        states: [M, H], the vocabulary head's states of the M masked positions, before they are compared with pieces.
        words: [V, H], the word embeddings.
        bias: [V], if the head has one.
        targets: [M] int64, the original pieces.

    Returns:
        A scalar, computed in float32 where the logits are narrower; 0 if nothing was masked.
    """
    if states.device.type == "cpu":
        # In bf16 `F.linear` without a bias has other last bits than the product that results were recorded with.
        logits = states @ words.T if bias is None else F.linear(states, words, bias)
        total = F.cross_entropy(at_least_float32(logits), targets, reduction="sum")
    else:
        total = summed_cross_entropy(states, words, bias, targets)
    return total / max(len(targets), 1)


def soft_cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy against a distribution (BoW prediction: uniform over the set of the text's pieces).

    ``loss = -(1/B) sum_b sum_v targets_bv log softmax(logits_b)_v``; its least value is the
    entropy of the targets, not 0.

    Args:
        logits: [B, V].
        targets: [B, V], rows that sum to 1.

    Returns:
        A scalar, computed in float32 where the logits are narrower.
    """
    return F.cross_entropy(at_least_float32(logits), targets)


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


def nt_xent(similarities: Tensor, temperature: float) -> Tensor:
    """Contrast the two views of each text with all other views (Chen et al. 2020, Eq. 1; CPDAE, Eq. 5).

    ``loss = mean_i -log( exp(s_ip / t) / sum_{k != i} exp(s_ik / t) )`` with ``p`` the other view of the text that
    ``i`` is a view of. All 2m views are anchors; CPDAE's Eq. 5 sums over one view of each text only.

    Args:
        similarities: [2m, 2m]; the views of a text are neighbours, 0 and 1, 2 and 3, and so on.

    Returns:
        A scalar; 0 for a single text, which has no negatives.
    """
    views = torch.arange(len(similarities), device=similarities.device)
    itself = views[:, None] == views
    return F.cross_entropy((similarities / temperature).masked_fill(itself, float("-inf")), views ^ 1)


def jensen_shannon(distributions: Tensor) -> Tensor:
    """Jensen-Shannon divergence between all pairs of distributions, in nats (CPDAE, Eq. 7 with its constants).

    ``JS(P, Q) = KL(P, M) / 2 + KL(Q, M) / 2 = H(M) - (H(P) + H(Q)) / 2`` with ``M = (P + Q) / 2``; from 0 for equal
    distributions to ln 2 for disjoint ones.

    Args:
        distributions: [N, V], rows that sum to 1; computed in float32 where they are narrower.

    Returns:
        [N, N], symmetric. Memory grows with N * (N + V), not with N * N * V.
    """
    result: Tensor = _JensenShannon.apply(at_least_float32(distributions).clamp(min=1e-30))  # 0 log 0 is 0
    return result


class _JensenShannon(torch.autograd.Function):
    """``JS = sum_v (p ln p + q ln q - s ln s + s ln 2) / 2`` and ``dJS/dp = (ln p - ln s + ln 2) / 2``, ``s = p + q``.

    One logarithm a pair and piece each way, one row of pairs at a time.
    """

    @staticmethod
    def forward(ctx: Any, p: Tensor) -> Tensor:
        """Distributions [N, V], all above 0 -> divergences [N, N]."""
        ctx.save_for_backward(p)
        own = (p * (p.log() + math.log(2))).sum(dim=1)
        shared = torch.diag(2 * own)  # of equal distributions s = 2 p
        for i in range(len(p) - 1):
            s = p[i] + p[i + 1 :]
            shared[i, i + 1 :] = shared[i + 1 :, i] = s.mul_(s.log()).sum(dim=1)
        return (own[:, None] + own - shared) / 2

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Tensor:
        """The gradient [N, V] for an upstream gradient [N, N]."""
        (p,) = ctx.saved_tensors
        weights = (upstream[0] + upstream[0].T).fill_diagonal_(0) / 2
        gradient = (p.log() + math.log(2)) * weights.sum(dim=1, keepdim=True)
        for i in range(len(p) - 1):
            part = (p[i] + p[i + 1 :]).log_().mul_(weights[i + 1 :, i : i + 1])
            gradient[i] -= part.sum(dim=0)
            gradient[i + 1 :] -= part
        return gradient


def bag_cross_entropy(
    logits: Tensor, bag: Tensor, reduction: Literal["sum", "mean_pos", "mean_vocab"], weights: Tensor | None = None
) -> Tensor:
    """Binary cross-entropy of a text's pieces, each entry of the vocabulary for itself (CPDAE, Eq. 4 corrected).

    ``loss = -mean_b (1/n_b) sum_v w_v [ y_bv log sigmoid(z_bv) + (1 - y_bv) log(1 - sigmoid(z_bv)) ]``, where ``y`` is
    1 at the pieces of the bag and 0 elsewhere, and ``n_b`` is 1 (``sum``), the size of the bag (``mean_pos``) or V
    (``mean_vocab``). The paper prints ``log sigmoid(z)`` in both terms.

    Args:
        logits: [B, V], z.
        bag: [B, K] int64, distinct within a row, padded with -1.
        weights: [V], w; 1 without.

    Returns:
        A scalar, computed in float32 where the logits are narrower.
    """
    logits = at_least_float32(logits)
    absent, right = F.softplus(logits), logits  # -log(1 - sigmoid(z)) = softplus(z), -log sigmoid(z) = softplus(z) - z
    if weights is not None:
        absent, right = absent * weights, right * weights
    present = bag >= 0
    total = absent.sum(dim=1) - right.gather(1, bag.clamp(min=0)).masked_fill(~present, 0.0).sum(dim=1)
    if reduction == "mean_pos":
        total = total / present.sum(dim=1).clamp(min=1)
    return total.mean() / (logits.shape[1] if reduction == "mean_vocab" else 1)


def preference(scores: Tensor) -> Tensor:
    """Margin ranking of the better of two candidates over the softmax of their scores (PROP, Eq. 9; margin 1).

    ``loss = mean max(0, 1 - (p_better - p_worse))`` with ``p = softmax(scores)`` over the two. The difference never
    exceeds 1, so the hinge never clips and the loss is between 0 and 2; equal scores give 1.

    Args:
        scores: [*, 2], the better candidate first.

    Returns:
        A scalar.
    """
    better, worse = scores.softmax(dim=-1).unbind(-1)
    return F.relu(1 - (better - worse)).mean()


def kl_over_pool(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Divergence of the student's distribution over passages from the teacher's (TCT-ColBERT, Eq. 2 to 4).

    ``loss = mean_i KL(p_i || q_i) = mean_i sum_j p_ij (ln p_ij - ln q_ij)`` with ``p_i = softmax(teacher_i / t)`` and
    ``q_i = softmax(student_i)``: the temperature is only the teacher's. 0 where the student's scores are the teacher's
    over t, but for a constant of each query.

    Args:
        student: [*, P], scores of the passages of each query's pool.
        teacher: [*, P], of the same passages; no gradient reaches it.

    Returns:
        A scalar.
    """
    wanted = F.log_softmax(teacher.detach() / temperature, dim=-1).flatten(0, -2)
    given = F.log_softmax(student, dim=-1).flatten(0, -2)
    return F.kl_div(given, wanted, reduction="batchmean", log_target=True)


def kl_over_pairs(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """The same over a positive and one negative at a time (TCT-ColBERT, table 2, row 2: "KD-T2 (ours)").

    Args:
        student: [B, P], scores of a query's positive, first, and of its negatives.
        teacher: [B, P], of the same passages; no gradient reaches it.

    Returns:
        A scalar, the mean over the B * (P - 1) pairs.
    """
    return kl_over_pool(_pairs(student), _pairs(teacher), temperature)


def margin_mse(student: Tensor, teacher: Tensor) -> Tensor:
    """Squared difference of margins (Hofstaetter et al. 2020, Eq. 7).

    ``loss = mean_ij ((s_i0 - s_ij) - (t_i0 - t_ij))^2`` over the negatives ``j`` of query ``i``, whose positive is 0.
    A constant added to all scores of a query, the student's or the teacher's, changes nothing.

    Args:
        student: [B, P], scores of a query's positive, first, and of its negatives.
        teacher: [B, P], of the same passages; no gradient reaches it.

    Returns:
        A scalar, the mean over the B * (P - 1) pairs.
    """
    return F.mse_loss(student[:, :1] - student[:, 1:], (teacher[:, :1] - teacher[:, 1:]).detach())


def residual_margin(student: Tensor, lexical: Tensor) -> Tensor:
    """A hinge whose margin is what a lexical score leaves to be learned (CLEAR: Gao et al. 2020b, section 3.2).

    ``loss = mean_ij max(0, 1 - (l_i0 - l_ij) - (s_i0 - s_ij))`` over the negatives ``j`` of query ``i``, whose positive
    is 0: nothing is asked of a pair that the lexical scores tell apart by 1.

    Args:
        student: [B, P], scores of a query's positive, first, and of its negatives.
        lexical: [B, P], of the same passages, weighted; no gradient reaches it.

    Returns:
        A scalar, the mean over the B * (P - 1) pairs.
    """
    total = student + lexical.detach()
    return F.relu(1 - total[:, :1] + total[:, 1:]).mean()


def margin_mse_in_batch(student: Tensor, teacher: Tensor) -> Tensor:
    """Squared difference of the margins between a query's positive and the passages of other queries (TAS-B, 3.3).

    ``loss = mean_ij ((s_ip - s_ij) - (t_ip - t_ij))^2`` over the passages ``j`` that other queries bring, where ``p``
    is the first that query ``i`` brings.

    Args:
        student: [B, B * P], scores of the passages of all queries, P in turn of each; B is at least 2.
        teacher: [B, B * P], of the same passages; no gradient reaches it.

    Returns:
        A scalar, the mean over the B * (B - 1) * P pairs.
    """
    count = student.shape[1] // len(student)
    query = torch.arange(len(student), device=student.device)
    others = query[:, None] != query.repeat_interleave(count)
    gap = student - teacher.detach()
    own = gap[query, query * count]
    return (own[:, None] - gap)[others].square().mean()


def _pairs(scores: Tensor) -> Tensor:
    """[B, P] -> [B, P - 1, 2]: each row's first score next to every other."""
    return torch.stack([scores[:, :1].expand_as(scores[:, 1:]), scores[:, 1:]], dim=-1)

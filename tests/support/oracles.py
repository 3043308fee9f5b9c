"""The losses again, from their formulas, in float64 and with NumPy only: slow, plain, independent of the library."""

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray


def info_nce(
    queries: Array,
    passages: Array,
    positive: Array,
    temperature: float,
    ignored: Array | None = None,
    log_q: Array | None = None,
) -> float:
    total = 0.0
    drawn = np.ones(len(passages)) if log_q is None else np.exp(log_q)
    for i, query in enumerate(queries):
        right = np.exp(query @ passages[positive[i]] / temperature) / drawn[positive[i]]
        others = sum(
            np.exp(query @ passage / temperature) / drawn[j]
            for j, passage in enumerate(passages)
            if j != positive[i] and not (ignored is not None and ignored[i, j])
        )
        total -= np.log(right / (right + others))
    return total / len(queries)


def pairwise(right: Array, wrong: Array) -> float:
    terms = [-np.log(1 / (1 + np.exp(-(own - other)))) for own, row in zip(right, wrong, strict=True) for other in row]
    return sum(terms) / len(terms)


def pairwise_over_pool(scores: Array, positive: Array, ignored: Array) -> float:
    terms = [
        -np.log(1 / (1 + np.exp(row[j] - row[positive[i]])))
        for i, row in enumerate(scores)
        for j in range(len(row))
        if j != positive[i] and not ignored[i, j]
    ]
    return sum(terms) / len(terms)


def ranked_pairs(scores: Array, right: Array, wrong: Array, gains: Array | None = None) -> float:
    per_query = []
    for i, row in enumerate(scores):
        pairs = [(a, b) for a in range(len(row)) for b in range(len(row)) if right[i, a] and wrong[i, b]]
        weight = {pair: 1.0 if gains is None else abs(gains[pair[0]] - gains[pair[1]]) for pair in pairs}
        terms = [weight[a, b] * np.log(1 + np.exp(-(row[a] - row[b]))) for a, b in pairs]
        per_query.append(sum(terms) / len(terms) if terms else 0.0)
    return sum(per_query) / len(per_query)


def pointwise(scores: Array) -> float:
    terms = []
    for row in scores:
        for place, score in enumerate(row):
            share = 1 / (1 + np.exp(-score))
            terms.append(-np.log(share if place == 0 else 1 - share))
    return sum(terms) / len(terms)


def residual_margin(student: Array, lexical: Array) -> float:
    terms = []
    for own, given in zip(student, lexical, strict=True):
        for j in range(1, len(own)):
            margin = 1 - (given[0] - given[j])
            terms.append(max(0.0, margin - own[0] + own[j]))
    return sum(terms) / len(terms)


def margin_mse_in_batch(student: Array, teacher: Array) -> float:
    """Of a batch whose queries bring as many passages each, the first of them their positive."""
    queries, each = len(student), student.shape[1] // len(student)
    terms = []
    for i in range(queries):
        own = i * each
        for j in range(queries * each):
            if not own <= j < own + each:
                terms.append(((student[i, own] - student[i, j]) - (teacher[i, own] - teacher[i, j])) ** 2)
    return sum(terms) / len(terms)


def choice(scores: Array, positive: Array, ignored: Array) -> float:
    total = 0.0
    for i, row in enumerate(scores):
        kept = [np.exp(score) for j, score in enumerate(row) if j == positive[i] or not ignored[i, j]]
        total -= row[positive[i]] - np.log(sum(kept))
    return total / len(scores)


def max_sim(queries: list[Array], passages: list[Array]) -> Array:
    """Of texts as lists of the token vectors that count."""
    return np.array([[sum(max(q @ p for p in passage) for q in query) for passage in passages] for query in queries])


def sup_con(anchors: Array, candidates: Array, positive: Array, allowed: Array, temperature: float) -> float:
    per_anchor = []
    for i, anchor in enumerate(anchors):
        weights = [np.exp(anchor @ candidate / temperature) for candidate in candidates]
        below = sum(weight for j, weight in enumerate(weights) if allowed[i, j])
        own = [np.log(weights[j] / below) for j in range(len(candidates)) if positive[i, j]]
        if own:
            per_anchor.append(-sum(own) / len(own))
    return sum(per_anchor) / len(per_anchor)


def masked_lm(states: Array, words: Array, bias: Array, targets: Array) -> float:
    return cross_entropy(states @ words.T + bias, targets)


def cross_entropy(logits: Array, targets: Array) -> float:
    total = sum(-row[target] + np.log(np.exp(row).sum()) for row, target in zip(logits, targets, strict=True))
    return total / len(targets)


def soft_cross_entropy(logits: Array, targets: Array) -> float:
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return -(targets * np.log(shares)).sum() / len(logits)


def nt_xent(similarities: Array, temperature: float) -> float:
    weights = np.exp(similarities / temperature)
    total = 0.0
    for i, row in enumerate(weights):
        other = i + 1 if i % 2 == 0 else i - 1
        total -= np.log(row[other] / sum(weight for k, weight in enumerate(row) if k != i))
    return total / len(weights)


def jensen_shannon(distributions: Array) -> Array:
    def divergence(p: Array, q: Array) -> float:
        total = 0.0
        for one, other in zip(p, q, strict=True):
            middle = (one + other) / 2
            total += 0.5 * one * np.log(one / middle) if one > 0 else 0.0
            total += 0.5 * other * np.log(other / middle) if other > 0 else 0.0
        return total

    return np.array([[divergence(p, q) for q in distributions] for p in distributions])


def bag_cross_entropy(logits: Array, bag: Array, reduction: str, weights: Array | None = None) -> float:
    losses = []
    for row, pieces in zip(logits, bag, strict=True):
        present = {int(piece) for piece in pieces if piece >= 0}
        right = [1 / (1 + np.exp(-z)) for z in row]
        terms = [-np.log(share if v in present else 1 - share) for v, share in enumerate(right)]
        total = sum(terms) if weights is None else sum(np.array(terms) * weights)
        losses.append(total / {"sum": 1, "mean_pos": len(present), "mean_vocab": len(row)}[reduction])
    return sum(losses) / len(losses)


def gelu(values: Array) -> Array:
    return values / 2 * (1 + np.vectorize(math.erf)(values / math.sqrt(2)))


def layer_norm(values: Array, weight: Array, bias: Array) -> Array:
    centred = values - values.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True)) * weight + bias


def gradient(function: Callable[[Array], float], point: Array, step: float = 1e-5) -> Array:
    """Central differences of a scalar function."""
    result = np.zeros_like(point)
    for place in np.ndindex(point.shape):
        up, down = point.copy(), point.copy()
        up[place] += step
        down[place] -= step
        result[place] = (function(up) - function(down)) / (2 * step)
    return result


def preference(scores: Array) -> float:
    weights = np.exp(scores)
    shares = weights / weights.sum(axis=-1, keepdims=True)
    return float(np.mean(np.maximum(0, 1 - (shares[..., 0] - shares[..., 1]))))


def kl_over_pool(student: Array, teacher: Array, temperature: float) -> float:
    total = 0.0
    for given, wanted in zip(student, teacher, strict=True):
        p = np.exp(wanted / temperature) / sum(np.exp(score / temperature) for score in wanted)
        q = np.exp(given) / sum(np.exp(score) for score in given)
        total += sum(a * np.log(a / b) for a, b in zip(p, q, strict=True))
    return total / len(student)


def kl_over_pairs(student: Array, teacher: Array, temperature: float) -> float:
    found = []
    for given, wanted in zip(student, teacher, strict=True):
        for j in range(1, len(given)):
            p = 1 / (1 + np.exp((wanted[j] - wanted[0]) / temperature))
            q = 1 / (1 + np.exp(given[j] - given[0]))
            found.append(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)))
    return sum(found) / len(found)


def margin_mse(student: Array, teacher: Array) -> float:
    found = []
    for given, wanted in zip(student, teacher, strict=True):
        found += [((given[0] - given[j]) - (wanted[0] - wanted[j])) ** 2 for j in range(1, len(given))]
    return float(sum(found) / len(found))


def fused_scores(sparse: dict[str, float], dense: dict[str, float], weight: float) -> dict[str, float]:
    scores = {}
    for document in sorted(set(sparse).union(dense)):
        first = sparse[document] if document in sparse else min(sparse.values())
        second = dense[document] if document in dense else min(dense.values())
        scores[document] = float(np.float64(weight) * np.float64(first) + np.float64(second))
    return scores

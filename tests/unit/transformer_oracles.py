"""Transformer layers and the pre-training decoders again, in float64 and with NumPy only: plain loops, no batching.

``p`` holds a module's parameters by name; a part's own are found below its ``name``.
"""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray
Parameters = dict[str, Array]


def linear(x: Array, p: Parameters, name: str) -> Array:
    return x @ p[f"{name}.weight"].T + p[f"{name}.bias"]


def norm(x: Array, p: Parameters, name: str, epsilon: float) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)
    return centred / spread * p[f"{name}.weight"] + p[f"{name}.bias"]


def gelu(x: Array) -> Array:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def attention(queries: Array, states: Array, seen: Array, p: Parameters, name: str, heads: int) -> Array:
    """One text: queries [Q, H], states [L, H], seen [Q, L] -> [Q, H]."""
    query, key, value = (
        linear(x, p, f"{name}.{part}") for part, x in (("query", queries), ("key", states), ("value", states))
    )
    width = query.shape[1] // heads
    mixed = np.zeros_like(query)
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        for i in range(len(query)):
            weights = np.exp(key[:, own] @ query[i, own] / math.sqrt(width)) * seen[i]
            mixed[i, own] = weights @ value[:, own] / weights.sum()
    return linear(mixed, p, f"{name}.output")


def feed_forward(x: Array, p: Parameters, name: str) -> Array:
    return linear(gelu(linear(x, p, f"{name}.inner")), p, f"{name}.outer")


def post_norm(
    queries: Array, states: Array, seen: Array, p: Parameters, name: str, heads: int, epsilon: float, residual: bool
) -> Array:
    attended = attention(queries, states, seen, p, f"{name}.attention", heads)
    x = norm(attended + queries if residual else attended, p, f"{name}.attention_norm", epsilon)
    return norm(x + feed_forward(x, p, f"{name}.feed_forward"), p, f"{name}.feed_forward_norm", epsilon)


def pre_norm(
    x: Array, seen: Array, p: Parameters, name: str, heads: int, epsilon: float, recalled: Array | float = 0.0
) -> Array:
    normed = norm(x, p, f"{name}.attention_norm", epsilon)
    x = x + attention(normed, normed, seen, p, f"{name}.attention", heads) + recalled
    return x + feed_forward(norm(x, p, f"{name}.feed_forward_norm", epsilon), p, f"{name}.feed_forward")


def embeddings(ids: Array, p: Parameters, epsilon: float) -> Array:
    """BERT's, one text."""
    total = p["word_embeddings.weight"][ids] + p["position_embeddings.weight"][: len(ids)]
    return norm(total + p["token_type_embeddings.weight"][0], p, "LayerNorm", epsilon)


def mlm_logits(states: Array, words: Array, p: Parameters, epsilon: float) -> Array:
    x = norm(gelu(linear(states, p, "transform.dense")), p, "transform.LayerNorm", epsilon)
    return x @ words.T + p["bias"]


def before(length: int, window: int | None) -> Array:
    seen = np.zeros((length, length), dtype=bool)
    for i in range(length):
        for j in range(i + 1):
            seen[i, j] = j == 0 or window is None or i - j < window
    return seen


def own_masks(hidden: Array, picks: Array, real: Array) -> Array:
    """One text: packed masks [K, bytes], picks [L], real [L] -> [L, L]."""
    seen = np.zeros((len(picks), len(picks)), dtype=bool)
    for i, pick in enumerate(picks):
        for j in range(len(picks)):
            covered = bool(int(hidden[pick, j // 8]) & (1 << (j % 8)))
            seen[i, j] = real[j] and not covered and i != j
    return seen


def auto_encoding(h: Array, embedded: Array, real: Array, p: Parameters, heads: int, epsilon: float) -> Array:
    x = np.vstack([h, embedded[1:]])
    for layer in range(sum(name.endswith("attention.query.bias") for name in p)):
        x = post_norm(x, x, np.tile(real, (len(x), 1)), p, f"layer.{layer}", heads, epsilon, residual=True)
    return x


def auto_regression(h: Array, embedded: Array, seen: Array, p: Parameters, heads: int, epsilon: float) -> Array:
    x = np.vstack([h, embedded[1:]])
    for layer in range(sum(name.endswith("attention.query.bias") for name in p)):
        x = pre_norm(x, seen, p, f"layer.{layer}", heads, epsilon)
    return norm(x, p, "norm", epsilon)


def seed(h: Array, words: Array, seen: Array, p: Parameters, heads: int) -> Array:
    x = norm(words + p["positions"][: len(words)], p, "embedding_norm", 1e-5)
    for layer in range(sum(name.endswith("attention.query.bias") for name in p)):
        recalled = linear(linear(h, p, f"memory.{layer}.value"), p, f"memory.{layer}.output")
        x = pre_norm(x, seen, p, f"layer.{layer}", heads, 1e-5, recalled)
    return norm(x, p, "norm", 1e-5)


def enhanced(
    h: Array, places: Array, embedded: Array, seen: Array, p: Parameters, heads: int, epsilon: float, residual: bool
) -> Array:
    states = np.vstack([h, embedded[1:]])
    return post_norm(h + places[: len(embedded)], states, seen, p, "layer", heads, epsilon, residual)

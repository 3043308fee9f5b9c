"""Transformer layers and the pre-training decoders again, in float64 and with NumPy only: plain loops, no batching.

``p`` holds a module's parameters by name; a part's own are found below its ``name``.
"""

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


def split_mix(number: int, counter: int) -> int:
    """Java's SplittableRandom, whose states are ``number`` plus multiples of the golden ratio: 63 bits."""
    whole = (1 << 64) - 1
    z = (number + 0x9E3779B97F4A7C15 * counter) & whole
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & whole
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & whole
    return (z ^ (z >> 31)) >> 1


def hidden_words(pieces: list[int], number: int, budget: int, mask: int) -> set[int]:
    """One word after the other in the order of their numbers, each that there is still room for."""
    chosen = set()
    for word in sorted(range(len(pieces)), key=lambda word: split_mix(number, (mask << 20) + word)):
        if pieces[word] <= budget:
            chosen.add(word)
            budget -= pieces[word]
    return chosen


def own_masks(words: Array, number: int, budget: int, real: Array, most: int) -> Array:
    """One text: the word of each position or -1 [L], its number and budget, real [L] -> [L, L]."""
    pieces = [int((words == word).sum()) for word in range(words.max() + 1)]
    masks = min(int(real.sum()), most)
    hidden = [hidden_words(pieces, number, budget, mask) for mask in range(masks)]
    seen = np.zeros((len(words), len(words)), dtype=bool)
    for i in range(len(words)):
        pick = hidden[split_mix(number, (1 << 40) + i) % masks]
        for j, word in enumerate(words.tolist()):
            seen[i, j] = real[j] and word not in pick and i != j
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

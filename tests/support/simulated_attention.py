"""Attention kernels of a GPU, computed by the processor text by text, forward and backward, from their arguments."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def _check(query: Tensor, key: Tensor, bounds: Sequence[Any], options: Any) -> None:
    ends, of_keys, longest, longest_key = bounds
    assert len(ends) == len(of_keys)
    for part, found, most in ((query, ends, longest), (key, of_keys, longest_key)):
        assert found.dtype == torch.int32
        assert (int(found[0]), int(found[-1])) == (0, len(part))
        assert found.diff().max() <= most
    assert not any(options.values())


def _flash(*given: Any, **options: Any) -> tuple[Any, ...]:
    """``_flash_attention_forward`` of [T, heads, D]; the seed of its dropout is kept for the backward pass."""
    query, key, value, *bounds, rate, causal, debug = given
    assert query.dtype in (torch.float16, torch.bfloat16)
    assert (causal, debug) == (False, False)
    _check(query, key, bounds, options)
    seed = torch.randint(1 << 62, ())
    sums = query.new_zeros(query.shape[1], len(query), dtype=torch.float32)
    return attention(query, key, value, *bounds[:2], rate, seed), sums, seed, seed, query.new_zeros(0)


def _flash_backward(*given: Any, **options: Any) -> tuple[Tensor, ...]:
    gradient, query, key, value, _, _, ends, of_keys, _, _, rate, _, seed, _ = given
    return attention_backward(gradient, query, key, value, ends, of_keys, rate, seed)


def _efficient(*given: Any, **options: Any) -> tuple[Any, ...]:
    """``_efficient_attention_forward`` of [1, T, heads, D]."""
    query, key, value, bias, ends, of_keys, longest, longest_key, rate, mask_type, *learns = given
    assert (len(query), len(key), bias, mask_type) == (1, 1, None, 0)
    assert rate == 0, "the kernel's backward pass would draw another dropout"
    _check(query[0], key[0], (ends, of_keys, longest, longest_key), options)
    seed = torch.randint(1 << 62, ())
    sums = query.new_zeros(len(ends) - 1, query.shape[2], longest if any(learns) else 0)
    made = attention(query[0], key[0], value[0], ends, of_keys, rate, seed)[None]
    return made, sums, seed, seed, longest, longest_key


def _efficient_backward(*given: Any, **options: Any) -> tuple[Tensor | None, ...]:
    gradient, query, key, value, _, _, ends, of_keys, _, _, sums, rate, seed, *_ = given
    assert sums.numel(), "the forward pass did not keep what the backward pass needs"
    found = attention_backward(gradient[0], query[0], key[0], value[0], ends, of_keys, rate, seed)
    return *(part[None] for part in found), None


def attention(
    query: Tensor, key: Tensor, value: Tensor, ends: Tensor, of_keys: Tensor, rate: float, seed: Tensor
) -> Tensor:
    """Attention of tokens of each text to those of the same, [T, heads, D]."""
    texts = _texts((query, ends), (key, of_keys), (value, of_keys))
    chosen = _dropout_masks(texts, rate, seed)
    found = [
        (_probabilities(query, key) * kept) @ _at_least_fp32(value)
        for (query, key, value), kept in zip(texts, chosen, strict=True)
    ]
    return torch.cat(found, 1).transpose(0, 1).to(query.dtype)


def attention_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    ends: Tensor,
    of_keys: Tensor,
    rate: float,
    seed: Tensor,
) -> tuple[Tensor, ...]:
    """The gradients of queries, keys and values, [T, heads, D], by hand, since no graph is made below autograd."""
    found = []
    texts = _texts((query, ends), (key, of_keys), (value, of_keys), (gradient, ends))
    for parts, kept in zip(texts, _dropout_masks(texts, rate, seed), strict=True):
        queries, keys, values, upstream = map(_at_least_fp32, parts)
        weights = _probabilities(queries, keys)
        of_weights = upstream @ values.transpose(1, 2) * kept
        of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True)) * queries.shape[-1] ** -0.5
        of_values = (weights * kept).transpose(1, 2) @ upstream
        found.append((of_scores @ keys, of_scores.transpose(1, 2) @ queries, of_values))
    return tuple(torch.cat(each, 1).transpose(0, 1).to(query.dtype) for each in zip(*found, strict=True))


def _texts(*parts: tuple[Tensor, Tensor]) -> list[tuple[Tensor, ...]]:
    """Of each text its part of each [T, heads, D], as [heads, L, D]; with each where texts begin and end in it."""
    return list(zip(*(part.transpose(0, 1).split(ends.diff().tolist(), 1) for part, ends in parts), strict=True))


def _at_least_fp32(part: Tensor) -> Tensor:
    return part if part.dtype == torch.float64 else part.float()


def _probabilities(query: Tensor, key: Tensor) -> Tensor:
    return (_at_least_fp32(query) @ _at_least_fp32(key).transpose(1, 2) * query.shape[-1] ** -0.5).softmax(-1)


def _dropout_masks(texts: list[tuple[Tensor, ...]], rate: float, seed: Tensor) -> list[Tensor]:
    """What dropout multiplies the probabilities of each text with, [heads, Q, L]."""
    drawn = torch.Generator().manual_seed(int(seed))
    shapes = [(*query.shape[:2], key.shape[1]) for query, key, *_ in texts]
    return [(torch.rand(shape, generator=drawn) >= rate) / (1 - rate) for shape in shapes]


KERNELS: dict[str, Callable[..., Any]] = {  # by the operator that each stands for
    "aten._flash_attention_forward.default": _flash,
    "aten._flash_attention_backward.default": _flash_backward,
    "aten._efficient_attention_forward.default": _efficient,
    "aten._efficient_attention_backward.default": _efficient_backward,
}

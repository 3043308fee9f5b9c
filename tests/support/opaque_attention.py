"""Attention over texts of several lengths as an operation that torch's compiler does not look into, on a processor.

As FlashAttention is on a GPU: forward and backward, with the dropout of a seed that it draws and keeps.
"""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from encore.models.packing import Bounds, RaggedAttention
from tests.support import simulated_attention


@cache
def opaque() -> RaggedAttention:
    """A function with the arguments of ``packing.flash``, made where it is needed: that imports torch's compiler."""

    def forward(
        query: Tensor, key: Tensor, value: Tensor, ends: Tensor, of_keys: Tensor, rate: float
    ) -> tuple[Tensor, Tensor]:
        seed = torch.randint(1 << 62, ())
        return simulated_attention.attention(query, key, value, ends, of_keys, rate, seed).contiguous(), seed

    def backward(
        gradient: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        ends: Tensor,
        of_keys: Tensor,
        seed: Tensor,
        rate: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        found = simulated_attention.attention_backward(gradient, query, key, value, ends, of_keys, rate, seed)
        return found[0].contiguous(), found[1].contiguous(), found[2].contiguous()

    there = torch.library.custom_op("encore_tests::attention", forward, mutates_args=())
    there.register_fake(lambda query, *_: (query.new_empty(query.shape), query.new_empty((), dtype=torch.int64)))
    back = torch.library.custom_op("encore_tests::attention_backward", backward, mutates_args=())
    back.register_fake(lambda _, *parts: tuple(part.new_empty(part.shape) for part in parts[:3]))

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.rate = inputs
        ctx.save_for_backward(*tensors, output[1])

    def carry_back(ctx: Any, gradient: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        return (*back(gradient, *ctx.saved_tensors, ctx.rate), None, None, None)

    there.register_autograd(carry_back, setup_context=keep)

    def attention(query: Tensor, key: Tensor, value: Tensor, tokens: Bounds, texts: Bounds, rate: float) -> Tensor:
        out: Tensor = there(query, key, value, tokens.ends, texts.ends, rate)[0]
        return out

    return attention

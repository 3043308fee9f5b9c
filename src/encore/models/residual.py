"""The residual connection of a sublayer whose states are in single precision and whose products are in bf16.

Around each product autocast casts states to bf16, and gradients back before they are summed. On a GPU these functions
have products and sums read and write both types: 33 calls a layer in place of 39, and a gradient that is rounded once
less. Elsewhere, and in what torch's compiler reads, which fuses casts by itself, they are autocast's.
"""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encore.models.precision import add_product


def branch(states: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """A linear map of states [..., H] by ``weight`` [O, H], [..., O], and the states for the residual connection."""
    if _mixed(states, weight):
        mapped, residual = _Branch.apply(states, weight, bias)
        return mapped, residual
    return F.linear(states, weight, bias), states


def rejoin(residual: Tensor, states: Tensor, dense: nn.Linear, rate: float) -> Tensor:
    """``residual`` [..., H], plus the linear map of a sublayer's states [..., W] with dropout ``rate``."""
    if rate and _mixed(residual, dense.weight):
        total: Tensor = _Rejoin.apply(residual, states, dense.weight, dense.bias, rate)
        return total
    return residual + F.dropout(dense(states), rate)


def _mixed(states: Tensor, weight: Tensor) -> bool:
    """True on a GPU where states are in single precision and weights in bf16."""
    both = states.dtype == torch.float32 and weight.dtype == torch.bfloat16
    return both and states.is_cuda and not torch.compiler.is_compiling()


# Torch refuses a gradient of these gradients, because of `out`. `once_differentiable` would refuse it too, and take the
# host as long as a call of the GPU.
class _Branch(torch.autograd.Function):
    """The gradient of the states is that of the residual, plus the product of the other's with the weight."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        inputs = states.to(weight.dtype)
        ctx.save_for_backward(inputs, weight)
        return F.linear(inputs, weight, bias), states.view_as(states)

    @staticmethod
    def backward(ctx: Any, of_mapped: Tensor, of_residual: Tensor) -> tuple[Tensor, ...]:
        inputs, weight = ctx.saved_tensors
        of_mapped = of_mapped.flatten(0, -2)
        add_product(of_residual.view(-1, weight.shape[1]), of_mapped, weight)  # in place: nothing else reads it
        return of_residual, of_mapped.T @ inputs.flatten(0, -2), of_mapped.sum(0)


class _Rejoin(torch.autograd.Function):
    """The gradient of what is added is masked, scaled and cast in one call."""

    @staticmethod
    def forward(ctx: Any, residual: Tensor, states: Tensor, weight: Tensor, bias: Tensor, rate: float) -> Tensor:
        dropped, mask = torch.native_dropout(F.linear(states, weight, bias), rate, True)
        ctx.save_for_backward(states, weight, mask)
        ctx.scale, ctx.zero = 1 / (1 - rate), zero(mask.device)
        return residual + dropped

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        states, weight, mask = ctx.saved_tensors
        added = torch.empty_like(upstream, dtype=weight.dtype)
        torch.addcmul(ctx.zero, upstream, mask, value=ctx.scale, out=added)
        rows = added.flatten(0, -2)
        return upstream, added @ weight, rows.T @ states.flatten(0, -2), rows.sum(0), None


@cache
def zero(device: torch.device) -> Tensor:
    """A zero in single precision."""
    return torch.zeros((), device=device)

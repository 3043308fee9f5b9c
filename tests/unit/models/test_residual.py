"""States in single precision and products in bf16: on a GPU, gradients nearer to exact than autocast's."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encore.models.precision import add_product
from encore.models.residual import branch, rejoin

RATE = 0.25


def drawn(*shape: int) -> Tensor:
    """Numbers on the GPU, the same for the same shape."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to("cuda")


def sublayer(states: Tensor, inner: Tensor, bias: Tensor, outer: nn.Linear, kept: Tensor) -> Tensor:
    """``states`` and a feed-forward network of them, in the types of what is given; dropout keeps ``kept``."""
    mapped = F.linear(states.to(inner.dtype), inner, bias)
    return states + outer(F.gelu(mapped)) * kept.to(inner.dtype) / (1 - RATE)


@pytest.mark.parametrize("shape", [(40, 8), (5, 8, 8)])
def test_gradients_are_nearer_to_exact_than_autocasts(gpu: str, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    states, pull = drawn(*shape), drawn(*shape[::-1]).reshape(shape)
    inner, bias = drawn(32, 8).bfloat16(), drawn(32).bfloat16()
    outer = nn.Linear(32, 8, device="cuda", dtype=torch.bfloat16)
    first = [each.requires_grad_() for each in (states, inner, bias)]

    mapped, residual = branch(*first)
    total = rejoin(residual, F.gelu(mapped), outer, rate=RATE)
    kept = (total - states).detach() != 0
    assert total.dtype == torch.float32
    assert 0.5 < kept.float().mean() < 0.95
    found = torch.autograd.grad((total * pull).sum(), [*first, *outer.parameters()])

    plain = torch.autograd.grad((sublayer(*first, outer, kept) * pull).sum(), [*first, *outer.parameters()])
    first = [each.detach().double().requires_grad_() for each in first]
    outer = outer.double()
    exact = torch.autograd.grad((sublayer(*first, outer, kept) * pull).sum(), [*first, *outer.parameters()])
    assert [each.dtype for each in found] == [each.dtype for each in plain]
    assert all(error(one, right) < 0.01 for one, right in zip(found, exact, strict=True))
    assert error(found[0], exact[0]) < error(plain[0], exact[0])
    ours, others, right = (torch.cat([each.flatten().double() for each in way]) for way in (found, plain, exact))
    assert error(ours, right) < 1.02 * error(others, right)


def error(found: Tensor, exact: Tensor) -> float:
    return float((found.double() - exact).norm() / exact.norm())


def test_a_product_in_half_precision_is_added_without_rounding_it(gpu: str) -> None:
    total, left, right = drawn(6, 4), drawn(6, 32).bfloat16(), drawn(32, 4).bfloat16()
    expected = total.double() + left.double() @ right.double()
    add_product(total, left, right)
    assert total.dtype == torch.float32
    assert error(total, expected) < 1e-6

"""The vocabulary's loss by blocks: the formula's numbers and the plain way's, of any count of positions."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from encore.training import losses, vocabulary_loss
from encore.training.vocabulary_loss import BLOCK, TILE, positions_at_once, summed_cross_entropy
from tests.support import oracles
from tests.support.simulated_gpu import GpuTensor, simulated_gpu

BLOCK_OF_FOUR = 4
COUNTS = [0, 1, 4, 5, 8, 11]  # nothing, one position, whole blocks, and one position more


class Largest(TorchDispatchMode):
    """Inside, the numbers of the largest tensor that any operation makes, and the operations by name."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.names.append(func._schema.name.removeprefix("aten::"))
        self.numbers = max([self.numbers, *(leaf.numel() for leaf in tree_leaves(made) if isinstance(leaf, Tensor))])
        return made


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary_loss, "positions_at_once", lambda vocabulary: BLOCK_OF_FOUR)


def head(count: int, width: int = 6, vocabulary: int = 13, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """States [count, width], words [vocabulary, width] and bias [vocabulary] as leaves, then targets."""
    rng = torch.Generator().manual_seed(count)
    shapes = (count, width), (vocabulary, width), (vocabulary,)
    leaves = [torch.randn(shape, generator=rng, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]
    return [*leaves, torch.randint(vocabulary, (count,), generator=rng)]


def mean_by_blocks(*given: Any) -> Tensor:
    return summed_cross_entropy(*given) / max(len(given[-1]), 1)


def learned(loss: Any, given: list[Any], upstream: float = 1.0) -> list[Tensor]:
    """The loss, and its gradients for what is given."""
    leaves = [each.detach().requires_grad_() for each in given[:-1] if each is not None]
    states, words, *bias = leaves
    value = loss(states, words, bias[0] if bias else None, given[-1])
    return [value.detach(), *torch.autograd.grad(upstream * value, leaves)]


def formula(states: np.ndarray, words: np.ndarray, bias: np.ndarray, targets: np.ndarray) -> list[Any]:
    """The mean of -log p(target), and its gradients: p less 1 at the target is that of a logit."""
    logits = states @ words.T + bias
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    of_logits = (shares - np.eye(len(words))[targets]) / len(targets)
    mean = oracles.masked_lm(states, words, bias, targets)
    return [mean, of_logits @ words, of_logits.T @ states, of_logits.sum(axis=0)]


# Numbers


@pytest.mark.parametrize("loss", [mean_by_blocks, losses.masked_lm])
@pytest.mark.parametrize("count", COUNTS[1:])
def test_loss_and_gradients_are_those_of_the_formula(loss: Any, count: int) -> None:
    given = head(count)
    expected = formula(*(each.detach().numpy() for each in given))
    for found, right in zip(learned(loss, given), expected, strict=True):
        assert found.numpy() == pytest.approx(right, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("count", COUNTS)
def test_blocks_change_nothing_but_rounding(count: int, bias: bool) -> None:
    states, words, offsets, targets = head(count, dtype=torch.float32)
    given = [states, words, offsets if bias else None, targets]
    expected = learned(losses.masked_lm, given, 0.7)
    for found, right in zip(learned(mean_by_blocks, given, 0.7), expected, strict=True):
        assert found.dtype == right.dtype == torch.float32
        assert torch.allclose(found, right, rtol=1e-5, atol=1e-7)


def test_neither_large_logits_nor_strides_change_it() -> None:
    states, words, offsets, targets = head(9)
    given = [1000 * states.detach().T.contiguous().T, words.detach().repeat(1, 2)[:, ::2], offsets, targets]
    assert not given[0].is_contiguous()
    assert not given[1].is_contiguous()
    for found, right in zip(learned(mean_by_blocks, given), learned(losses.masked_lm, given), strict=True):
        assert found.isfinite().all()
        assert torch.allclose(found, right, rtol=1e-10, atol=1e-12)


def test_a_gradient_reaches_what_made_the_states_and_each_use_of_the_words() -> None:
    """As in an encoder whose word embeddings are its head's too."""
    ids = torch.tensor([1, 5, 5, 2, 0, 7, 12, 3, 3])
    found = []
    for loss in (mean_by_blocks, losses.masked_lm):
        _, words, offsets, targets = head(len(ids))
        loss(torch.tanh(words[ids]), words, offsets, targets).backward()
        found.append(words.grad)
    assert torch.allclose(*found, rtol=1e-10, atol=1e-12)


def test_a_gradient_of_the_gradient_is_refused_not_wrong() -> None:
    states, *rest = head(5)
    (gradient,) = torch.autograd.grad(summed_cross_entropy(states, *rest) ** 2, states, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_nothing_masked_costs_nothing_and_moves_nothing() -> None:
    loss, *gradients = learned(mean_by_blocks, head(0))
    assert loss.item() == 0
    assert [float(gradient.abs().sum()) for gradient in gradients] == [0, 0, 0]


# Half precision


@pytest.mark.parametrize("narrow_states", [True, False])
def test_products_are_autocasts_and_sums_are_not(narrow_states: bool) -> None:
    states, *rest = head(64, width=32, vocabulary=200, dtype=torch.float32)
    given = [states.bfloat16() if narrow_states else states, *rest]
    exact = learned(losses.masked_lm, [each.bfloat16().double() for each in given[:-1]] + given[-1:])
    with torch.autocast("cpu", torch.bfloat16):
        plain, blocks = (learned(loss, given) for loss in (losses.masked_lm, mean_by_blocks))
    assert [each.dtype for each in blocks] == [each.dtype for each in plain]
    assert blocks[0].dtype == torch.float32
    assert blocks[0].item() == pytest.approx(plain[0].item(), rel=1e-6)  # of the same logits, in bf16
    for found, as_before, right in zip(blocks[1:], plain[1:], exact[1:], strict=True):
        assert error(found, right) < 0.01
        assert error(found, right) < 1.1 * error(as_before, right)


def error(found: Tensor, right: Tensor) -> float:
    return float((found.double() - right).norm() / right.norm())


def test_many_blocks_sum_gradients_as_exactly_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """512 blocks; torch's own way in blocks rounds the sum to bf16 after each."""
    given = head(2048, width=8, vocabulary=50, dtype=torch.float32)
    exact = learned(losses.masked_lm, [each.bfloat16().double() for each in given[:-1]] + given[-1:])
    with torch.autocast("cpu", torch.bfloat16):
        many = learned(mean_by_blocks, given)
        monkeypatch.setattr(vocabulary_loss, "positions_at_once", lambda vocabulary: 2048)
        one = learned(mean_by_blocks, given)
    for found, whole, right in zip(many[2:], one[2:], exact[2:], strict=True):
        assert error(found, right) < 1.5 * error(whole, right) + 1e-4


def test_autocasts_own_copy_of_the_words_keeps_its_graph() -> None:
    """Autocast casts a parameter once; a copy made where nothing is differentiated would cut later uses off."""
    states, words, offsets, targets = head(5, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        mean_by_blocks(states, words, offsets, targets)
        later = (states.detach() @ words.T).sum()
    (gradient,) = torch.autograd.grad(later, words)
    assert gradient.abs().max() > 0


# Memory and time


@pytest.mark.parametrize("learning", [True, False])
def test_no_tensor_is_larger_than_a_block(learning: bool) -> None:
    count, vocabulary = 100, 90
    given = head(count, width=3, vocabulary=vocabulary)
    with Largest() as plain, torch.set_grad_enabled(learning):
        losses.masked_lm(*given)
    with Largest() as made, torch.set_grad_enabled(learning):
        loss = summed_cross_entropy(*given)
        if learning:
            loss.backward()
    assert plain.numbers == count * vocabulary
    assert made.numbers == BLOCK_OF_FOUR * vocabulary


def test_without_a_graph_no_gradient_is_computed() -> None:
    given = head(8)
    with Largest() as learning:
        loss = summed_cross_entropy(*given)
    with Largest() as reading, torch.no_grad():
        assert summed_cross_entropy(*given).item() == loss.item()
    products = [
        sum(name in {"mm", "addmm"} for name in names.names) / (8 / BLOCK_OF_FOUR) for names in (learning, reading)
    ]
    assert products == [3, 1]


@pytest.mark.parametrize("vocabulary", [96, 30_522, 250_002, 1 << 40])
def test_a_block_fills_its_bytes_by_whole_tiles(vocabulary: int) -> None:
    rows = positions_at_once(vocabulary)
    assert rows % TILE == 0
    assert 4 * vocabulary * rows <= BLOCK or rows == TILE
    assert 4 * vocabulary * (rows + TILE) > BLOCK


# Devices


def test_a_gpu_goes_by_blocks_and_a_processor_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[type] = []

    def noted(states: Tensor, *rest: Any) -> Tensor:
        calls.append(type(states))
        return summed_cross_entropy(states, *rest)

    monkeypatch.setattr(losses, "summed_cross_entropy", noted)
    given = head(11, dtype=torch.float32)
    expected = learned(losses.masked_lm, given)
    assert calls == []
    with simulated_gpu() as gpu:
        there = [each.detach().to("cuda") for each in given]
        gpu.waits.clear()
        found = learned(losses.masked_lm, there)
        assert gpu.waits.total() == 0
        found = [each.cpu() for each in found]
    assert calls == [GpuTensor]
    for here, right in zip(found, expected, strict=True):
        assert torch.allclose(here, right, rtol=1e-5, atol=1e-7)

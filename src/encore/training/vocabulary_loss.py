"""The cross-entropy over a vocabulary without its logits: by blocks of positions, gradients with the loss.

Logits [N, V] of 64 texts of 512 tokens are 4 GB in single precision, their softmax and their gradient as much again.
Here one block of them is there at a time (as in Hsu et al. 2024, "Liger Kernel"; Wijmans et al. 2025, "Cut Your
Losses in Large-Vocabulary Language Models", computes them again instead).

``torch.nn.functional.linear_cross_entropy`` has such a way too. Given bf16, it sums the loss and the weights' gradient
over blocks in bf16: after 64 blocks the gradient is 1.2 % off, here 0.2 %. Given fp32, it multiplies in fp32.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from encore.models.precision import at_least_float32

BLOCK = 1 << 28  # bytes of logits in single precision; see below
TILE = 128  # rows that matrix products on tensor cores come in


def positions_at_once(vocabulary: int) -> int:
    """Positions whose logits fill a block: 2,176 over BERT's 30,522 pieces.

    That is little next to what an encoder keeps, and enough for each block's products to fill a GPU, and to cost more
    than adding its gradient [V, H] of the word embeddings to that of the blocks before.
    """
    return max(BLOCK // (4 * vocabulary) // TILE, 1) * TILE


def summed_cross_entropy(states: Tensor, words: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
    """``-sum_n log softmax(words @ states_n + bias)[targets_n]``; products are autocast's, sums in float32 at least.

    Args:
        states: [N, H].
        words: [V, H], the vocabulary's embeddings.
        bias: [V], if there is one.
        targets: [N] int64.

    Returns:
        A scalar. Memory grows with a block of logits and N * H + V * H, not with N * V.
    """
    total: Tensor = _InBlocks.apply(states, words, bias, targets, torch.is_grad_enabled())
    return total


class _InBlocks(torch.autograd.Function):
    """The gradient of a logit is its softmax, less 1 for the true piece; products carry it on to what made it."""

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, words: Tensor, bias: Tensor | None, targets: Tensor, learning: bool
    ) -> Tensor:
        """The loss; if ``learning``, ``ctx`` keeps the gradients of states [N, H], words [V, H] and bias [V]."""
        kind = _products(words)
        weights, offsets = words.to(kind), None if bias is None else bias.to(kind)
        total = at_least_float32(states.new_zeros(()))
        learned = (states, words, words[:, 0]) if learning else ()
        gradients = [at_least_float32(torch.zeros_like(each)) for each in learned]
        rows = positions_at_once(len(words))
        for first in range(0, len(states), rows):
            block = slice(first, first + rows)
            inputs, places = states[block].to(kind), targets[block, None]
            likelihood, gradient = of_logits(F.linear(inputs, weights, offsets), places, learning)
            total -= likelihood
            if learning:
                _add(gradients, block, gradient, inputs, weights)
            del gradient  # before the next block's
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients for an upstream one, a scalar."""
        of_states, of_words, of_bias = (upstream * gradient for gradient in ctx.saved_tensors)
        return of_states, of_words, of_bias if ctx.needs_input_grad[2] else None, None, None


def _products(tensor: Tensor) -> torch.dtype:
    """The type that products are in: autocast's, or the tensor's own."""
    device = tensor.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else tensor.dtype


def of_logits(logits: Tensor, places: Tensor, learning: bool) -> tuple[Tensor, Tensor]:
    """What the loss needs of logits [n, V], in whose memory it works; ``places`` [n, 1] are the true pieces.

    Returns:
        The sum of the true pieces' log-likelihoods, and, if ``learning``, the gradient of the loss for the logits.
    """
    log_shares = at_least_float32(logits).log_softmax(dim=1)
    true = log_shares.gather(1, places)
    if learning:
        torch.exp(log_shares, out=logits)
        logits.scatter_(1, places, (true.exp() - 1).to(logits.dtype))
    return true.sum(), logits


def _add(gradients: list[Tensor], block: slice, of_logits: Tensor, inputs: Tensor, weights: Tensor) -> None:
    """Add a block's part to the gradients of states, words and bias: ``of_logits`` [n, V], ``inputs`` [n, H]."""
    of_states, of_words, of_bias = gradients
    of_bias += of_logits.sum(dim=0, dtype=of_bias.dtype)
    of_states[block] = of_logits @ weights
    of_words += of_logits.T @ inputs

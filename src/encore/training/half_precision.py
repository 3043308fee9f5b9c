"""Copies of weights in bf16, made once a step, so that no pass casts them one by one.

Autocast casts each weight of a linear map in every pass, and its gradient back: half of all calls of a step on a GPU.
Here one call fills a buffer whose parts stand in for the weights during a pass; weights, their gradients, moments and
checkpoints stay in single precision. Losses and gradients are those of autocast, to the last byte.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from encore.models.decoders import PostNormLayer, PreNormLayer
from encore.models.encoder import Layer
from encore.models.heads import Transform

BLOCKS = (Layer, Transform, PostNormLayer, PreNormLayer)  # that run under autocast; some heads run without it


class Copies:
    """The copies of the weights of all linear maps in the blocks of a model."""

    def __init__(self, model: nn.Module) -> None:
        """``model`` has its weights on their device already."""
        blocks = [block for block in model.modules() if isinstance(block, BLOCKS)]
        maps = {part: None for block in blocks for part in block.modules() if isinstance(part, nn.Linear)}
        self._places = [(part._parameters, name, weight) for part in maps for name, weight in part.named_parameters()]
        self.weights: list[Tensor] = list({id(weight): weight for _, _, weight in self._places}.values())
        self._copies: dict[int, Tensor] = {}
        if self.weights:
            sizes = [weight.numel() for weight in self.weights]
            row = torch.empty(sum(sizes), dtype=torch.bfloat16, device=self.weights[0].device)
            parts = zip(self.weights, row.split(sizes), strict=True)
            self._copies = {id(weight): part.view(weight.shape).detach() for weight, part in parts}

    @torch.no_grad()
    def refresh(self) -> None:
        """Take the weights as they now are, and forget gradients."""
        for weight in self.weights:
            self._copies[id(weight)].requires_grad_(weight.requires_grad).grad = None
        if self.weights:
            torch._foreach_copy_(list(self._copies.values()), self.weights)

    @contextmanager
    def in_place(self) -> Iterator[Callable[[], None]]:
        """Inside, the model computes with the copies; gives ``give_gradients``."""
        for parameters, name, weight in self._places:
            parameters[name] = self._copies[id(weight)]  # type: ignore[assignment]
        try:
            yield self.give_gradients
        finally:
            for parameters, name, weight in self._places:
                parameters[name] = weight

    @torch.no_grad()
    def give_gradients(self) -> None:
        """Add the gradients of the copies to those of the weights, and forget them."""
        learned = [weight for weight in self.weights if self._copies[id(weight)].grad is not None]
        if not learned:
            return
        found = [self._copies[id(weight)].grad for weight in learned]
        row = torch.cat([gradient.flatten() for gradient in found if gradient is not None]).float()  # two calls for all
        parts = row.split([weight.numel() for weight in learned])
        gradients = [part.view(weight.shape) for weight, part in zip(learned, parts, strict=True)]
        sums, added = list[Tensor](), list[Tensor]()
        for weight, gradient in zip(learned, gradients, strict=True):
            self._copies[id(weight)].grad = None
            if weight.grad is None:
                weight.grad = gradient
            else:
                sums.append(weight.grad)
                added.append(gradient)
        if added:
            torch._foreach_add_(sums, added)

"""Copies of weights in bf16, made once a step, so that no pass casts them one by one.

Autocast casts each weight of a linear map in every pass, and its gradient back: half of all calls of a step on a GPU.
One call fills a buffer whose parts stand in for the weights; losses and gradients are autocast's, to the last byte. One
product for queries, keys and values, which casts states once, changes last bits. States between layers stay in single
precision: in bf16 a gradient of four layers was 1.3 to 2.2 times as far from that of single precision.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from encore.models.decoders import PostNormLayer, PreNormLayer
from encore.models.encoder import Layer, SelfAttention
from encore.models.heads import Transform

JOINED = ("joined", "joined_bias")  # of self-attention
BLOCKS = (Layer, Transform, PostNormLayer, PreNormLayer)  # that run under autocast; some heads run without it


class Copies:
    """The copies of the weights of all linear maps in the blocks of a model."""

    def __init__(self, model: nn.Module) -> None:
        """``model`` has its weights on their device already."""
        blocks = [block for block in model.modules() if isinstance(block, BLOCKS)]
        maps = {part: None for block in blocks for part in block.modules() if isinstance(part, nn.Linear)}
        joined = [(part, _joined(part)) for part in model.modules() if isinstance(part, SelfAttention)]
        groups: list[list[Tensor]] = [group for _, both in joined for group in both]
        inside = {id(weight) for group in groups for weight in group}
        uses = [(part, *named) for part in maps for named in part.named_parameters() if id(named[1]) not in inside]
        groups += [[weight] for weight in {id(weight): weight for _, _, weight in uses}.values()]

        self.weights: list[Tensor] = [weight for group in groups for weight in group]
        sizes = [weight.numel() for weight in self.weights]
        device = self.weights[0].device if self.weights else None
        row = torch.empty(sum(sizes), dtype=torch.bfloat16, device=device)
        self._parts = [part.view_as(weight) for part, weight in zip(row.split(sizes), self.weights, strict=True)]
        rows = row.split([sum(weight.numel() for weight in group) for group in groups])
        self._copies = [part.view(-1, *group[0].shape[1:]).detach() for part, group in zip(rows, groups, strict=True)]
        of = {id(group[0]): copy for group, copy in zip(groups, self._copies, strict=True)}
        for copy, group in zip(self._copies, groups, strict=True):
            copy.requires_grad_(any(weight.requires_grad for weight in group))
        self._groups = groups
        self._places: list[tuple[dict[str, Any], str, Tensor | None, Tensor]]
        self._places = [(part._parameters, name, weight, of[id(weight)]) for part, name, weight in uses]
        for part, both in joined:  # torch's compiler takes the sizes of parameters alone as fixed
            named = zip(JOINED, both, strict=False)
            self._places += [(part._parameters, name, None, of[id(group[0])]) for name, group in named]

    @torch.no_grad()
    def refresh(self) -> None:
        """Take the weights as they now are, and forget gradients."""
        for copy in self._copies:
            copy.grad = None  # of a pass that ran out of memory
        if self.weights:
            torch._foreach_copy_(self._parts, self.weights)

    @contextmanager
    def in_place(self) -> Iterator[Callable[[], None]]:
        """Inside, the model computes with the copies; gives ``give_gradients``."""
        for parameters, name, _, copy in self._places:
            parameters[name] = copy
        try:
            yield self.give_gradients
        finally:
            for parameters, name, weight, _ in self._places:
                parameters[name] = weight

    @torch.no_grad()
    def give_gradients(self) -> None:
        """Add the gradients of the copies to those of the weights, and forget them."""
        found, learned = list[Tensor](), list[Tensor]()
        for copy, group in zip(self._copies, self._groups, strict=True):
            if copy.grad is not None:
                found.append(copy.grad.flatten())
                learned += group
                copy.grad = None
        if not found:
            return
        row = torch.empty(sum(map(len, found)), dtype=torch.float32, device=found[0].device)
        torch._foreach_copy_(row.split([len(each) for each in found]), found)
        sums, added = list[Tensor](), list[Tensor]()
        for weight, part in zip(learned, row.split([weight.numel() for weight in learned]), strict=True):
            if weight.grad is None and weight.requires_grad:
                weight.grad = part.view_as(weight)
            elif weight.grad is not None:
                sums.append(weight.grad)
                added.append(part.view_as(weight))
        if added:
            torch._foreach_add_(sums, added)


def _joined(part: SelfAttention) -> list[list[Tensor]]:
    """The weights, and the biases, of queries, keys and values, which one product reads."""
    return [[each.get_parameter(name) for each in (part.query, part.key, part.value)] for name in ("weight", "bias")]

"""How the texts of a batch lie in memory: as a rectangle with padding, or packed one after another without any.

A layout takes ids to where the layers work, brings their states back to [B, L, H], and is what attention asks. Layers
themselves work on the last dimension only, so they know nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

import torch
import torch.nn.functional as F
from torch import Tensor

AMPERE = (8, 0)  # the compute capability of GPUs from A100 on, which FlashAttention needs
RaggedAttention = Callable[[Tensor, Tensor, Tensor, Tensor, int, float], Tensor]


class Rectangle:
    """A batch as it is: texts of L tokens, keys at padding hidden from attention."""

    positions = None  # 0 to L - 1

    def __init__(self, mask: Tensor | None) -> None:
        """mask bool [B, L], true at real tokens; None when all are."""
        self.visible = None if mask is None else mask[:, None, None, :]

    @overload
    def take(self, values: Tensor) -> Tensor: ...
    @overload
    def take(self, values: None) -> None: ...
    def take(self, values: Tensor | None) -> Tensor | None:
        """Values [B, L] as they are; None stays None."""
        return values

    def spread(self, states: Tensor) -> Tensor:
        """States [B, L, H] as they are."""
        return states


class Packing:
    """A batch without its padding: the T real tokens of all texts in a row."""

    def __init__(self, mask: Tensor) -> None:
        """mask bool [B, L], true at real tokens, of which every row has one. Waits for the device once, to learn T."""
        self.mask, self.shape = mask, mask.shape
        self.places = mask.flatten().nonzero().squeeze(1)  # [T], in the rectangle
        self.bounds = F.pad(mask.sum(1).cumsum(0), (1, 0)).int()  # [B + 1], of each text in the row
        self.positions = self.places % mask.shape[1]
        self.visible = self

    @overload
    def take(self, values: Tensor) -> Tensor: ...
    @overload
    def take(self, values: None) -> None: ...
    def take(self, values: Tensor | None) -> Tensor | None:
        """Values [B, L] of the real tokens, [T]; None stays None."""
        return None if values is None else values.flatten().index_select(0, self.places)

    def spread(self, states: Tensor) -> Tensor:
        """States [T, H] in their places of the rectangle, [B, L, H], 0 at padding."""
        empty = states.new_zeros(self.shape.numel(), states.shape[-1])
        return empty.index_copy(0, self.places, states).unflatten(0, self.shape)

    def attend(self, query: Tensor, key: Tensor, value: Tensor, rate: float) -> Tensor:
        """Attention of each text to itself, all [T, heads, D]."""
        attention = attention_for(query)
        if attention is efficient and rate:
            return self._padded(query, key, value, rate)
        return attention(query, key, value, self.bounds, self.shape[1], rate)

    def _padded(self, query: Tensor, key: Tensor, value: Tensor, rate: float) -> Tensor:
        """The same over padded texts, for training with dropout by the memory-efficient kernel.

        With the bounds of texts it takes the number of keys for 0 in the forward pass, so dropout's random numbers
        begin elsewhere than in the backward pass, and gradients are wrong (pytorch/pytorch#115590).
        """
        query, key, value = (self.spread(part.flatten(1)).unflatten(-1, part.shape[1:]) for part in (query, key, value))
        attended = attend(query, key, value, self.mask[:, None, None, :], rate)
        return attended.flatten(0, 1).index_select(0, self.places)


def attention_for(query: Tensor) -> RaggedAttention:
    """What computes attention over texts of several lengths for this query [T, heads, D].

    FlashAttention in half precision from A100 on; otherwise, as in single precision, the memory-efficient kernel.
    Neither takes every width of a head, and a processor has neither.
    """
    half, width = query.dtype in (torch.bfloat16, torch.float16), query.shape[-1]
    if not query.is_cuda or width % (8 if half else 4):
        return one_by_one
    ampere = torch.cuda.get_device_capability(query.device) >= AMPERE
    return flash if half and ampere and width <= 256 else efficient


def flash(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int, rate: float) -> Tensor:
    """Attention over texts of several lengths with dropout, as PyTorch's nested tensors call it.

    Making these takes the host 2 to 3 ms a layer and pass, and ``varlen_attn`` has no dropout.

    Args:
        query, key, value: [T, heads, D], half precision on a GPU.
        bounds: int32 [B + 1], where texts begin and end.
        longest: the most tokens of a text.
        rate: of dropout.

    Returns:
        [T, heads, D].
    """
    attention = torch.ops.aten._flash_attention_forward
    out: Tensor = attention(query, key, value, bounds, bounds, longest, longest, rate, False, False)[0]
    return out


def efficient(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int, rate: float) -> Tensor:
    """The same in fp32 too and on older GPUs, but not for training with dropout; arguments as of ``flash``."""
    attention = torch.ops.aten._efficient_attention_forward
    trains = torch.is_grad_enabled() and query.requires_grad  # the backward pass needs the sums of exponentials
    row = (part.unsqueeze(0) for part in (query, key, value))
    out: Tensor = attention(*row, None, bounds, bounds, longest, longest, rate, 0, trains)[0]
    return out.squeeze(0)


def one_by_one(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, longest: int, rate: float) -> Tensor:
    """The same anywhere, in a call for each text; arguments as of ``flash``."""
    lengths = bounds.diff().tolist()
    texts = zip(*(part.transpose(0, 1).split(lengths, 1) for part in (query, key, value)), strict=True)
    found = [F.scaled_dot_product_attention(q, k, v, dropout_p=rate) for q, k, v in texts]
    return torch.cat(found, 1).transpose(0, 1)


Visible = Tensor | Packing | None
Layout = Rectangle | Packing


def layout(mask: Tensor | None) -> Layout:
    """How to compute a batch with this padding; ``mask`` bool [B, L], true at real tokens, None when all are.

    On a CPU batches are made of texts of like length, and padding is cheaper than a call for each text.
    """
    if mask is None:
        return Rectangle(None)
    if mask.device.type == "cpu":
        return Rectangle(None if bool(mask.all()) else mask)
    packing = Packing(mask)
    return Rectangle(None) if len(packing.places) == mask.numel() else packing


def attend(query: Tensor, key: Tensor, value: Tensor, visible: Visible, rate: float) -> Tensor:
    """Attention with dropout ``rate``: [B, L, heads, D] of a rectangle or [T, heads, D] of a row, and the same back.

    ``visible``: a mask that broadcasts to [B, heads, L, L], true where a query (row) may look; None for everywhere; or
    the packing of a row.
    """
    if isinstance(visible, Packing):
        return visible.attend(query, key, value, rate)
    query, key, value = (part.transpose(1, 2) for part in (query, key, value))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=visible, dropout_p=rate).transpose(1, 2)

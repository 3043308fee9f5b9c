"""The layout of a batch of texts in memory: as a rectangle with padding, or packed one after another without any.

A layout takes ids to where the layers work, brings their states back to [B, L, H], and is what attention asks. Layers
themselves work on the last dimension only, so they know nothing of it. It also picks the first token of each text,
[CLS], where no other state of the last layer is read.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from encore.models.inputs import parts_by_length
from encore.models.transfer import to_device

AMPERE = (8, 0)  # the compute capability of GPUs from A100 on, which FlashAttention needs


class Bounds(NamedTuple):
    """The bounds of texts in a row, for some of their tokens."""

    ends: Tensor  # int32 [B + 1]: 0, and where each text ends
    longest: int  # the most tokens of a text


RaggedAttention = Callable[[Tensor, Tensor, Tensor, Bounds, Bounds, float], Tensor]


class Rectangle:
    """A batch as it is: texts of L tokens, keys at padding hidden from attention."""

    positions = None  # 0 to L - 1

    def __init__(self, mask: Tensor | None) -> None:
        """mask bool [B, L], true at real tokens; None when all are."""
        self.visible = None if mask is None else mask[:, None, None, :]
        self.visible_to_first = self.visible

    def take(self, values: Tensor) -> Tensor:
        """Values [B, L] as they are."""
        return values

    def spread(self, states: Tensor) -> Tensor:
        """States [B, L, H] as they are."""
        return states

    def first(self, states: Tensor) -> Tensor:
        """States of the first tokens [B, 1, H], of all states [B, L, H]."""
        return states[:, :1]


class Packing:
    """A batch without its padding: the T real tokens of all texts in a row."""

    def __init__(self, mask: Tensor, device: torch.device | None = None) -> None:
        """Learn where real tokens are; waits for the device of ``mask`` once, and for no other.

        Args:
            mask: bool [B, L], true at real tokens, of which every row has one.
            device: of the texts, if not that of ``mask``.
        """
        device = device or mask.device
        places = mask.flatten().nonzero().squeeze(1)
        ends = F.pad(mask.sum(1).cumsum(0), (1, 0)).int()
        self.mask, self.shape = to_device(mask, device), mask.shape
        # Of each token [T] its place in the rectangle, and in its text.
        self.places, self.positions = to_device(torch.stack([places, places % mask.shape[1]]), device)
        self.bounds = Bounds(to_device(ends, device), mask.shape[1])
        self.visible = self.texts = self
        # Asked for here, since a compiled layer cannot.
        self.ampere = device.type == "cuda" and torch.cuda.get_device_capability(device) >= AMPERE

    @property
    def visible_to_first(self) -> "FirstTokens":
        """The tokens that the first ones see."""
        return FirstTokens(self)

    def take(self, values: Tensor) -> Tensor:
        """Values [B, L, ...] of the real tokens, [T, ...]."""
        return values.flatten(0, 1).index_select(0, self.places)

    def spread(self, states: Tensor) -> Tensor:
        """States [T, ...] in their places of the rectangle, [B, L, ...], 0 at padding."""
        empty = states.new_zeros(self.shape.numel(), *states.shape[1:])
        return empty.index_copy(0, self.places, states).unflatten(0, self.shape)

    def first(self, states: Tensor) -> Tensor:
        """States of the first tokens [B, H], of all states [T, H]."""
        return states.index_select(0, self.bounds.ends[:-1])


class FirstTokens:
    """The first tokens of packed texts; each looks at all of its text."""

    def __init__(self, texts: Packing) -> None:
        self.texts = texts
        self.bounds = Bounds(torch.arange(len(texts.mask) + 1, dtype=torch.int32, device=texts.mask.device), 1)

    def take(self, values: Tensor) -> Tensor:
        """Values [B, 1, ...] as [B, ...]."""
        return values[:, 0]

    def spread(self, states: Tensor) -> Tensor:
        """States [B, ...] as [B, 1, ...]."""
        return states[:, None]


def _attend(tokens: Packing | FirstTokens, query: Tensor, key: Tensor, value: Tensor, rate: float) -> Tensor:
    """Attention of some tokens [T or B, heads, D] to their texts [T, heads, D].

    Training with dropout by the memory-efficient kernel goes through padded texts: with the bounds of texts it takes
    the number of keys for 0 in the forward pass, so dropout's random numbers begin elsewhere than in the backward pass,
    and gradients are wrong (pytorch/pytorch#115590).
    """
    texts, attention = tokens.texts, attention_for(query, tokens.texts.ampere)
    if attention is efficient and rate:
        padded = tokens.spread(query), texts.spread(key), texts.spread(value)
        return tokens.take(attend(*padded, texts.mask[:, None, None, :], rate))
    return attention(query, key, value, tokens.bounds, texts.bounds, rate)


def attention_for(query: Tensor, ampere: bool) -> RaggedAttention:
    """The function that computes attention over texts of several lengths for this query [T, heads, D].

    FlashAttention in half precision from A100 on (``ampere``); otherwise, as in single precision, the memory-efficient
    kernel. Neither takes every width of a head, and a processor has neither.
    """
    half, width = query.dtype in (torch.bfloat16, torch.float16), query.shape[-1]
    if not query.is_cuda or width % (8 if half else 4):
        return one_by_one
    return flash if half and ampere and width <= 256 else efficient


def flash(query: Tensor, key: Tensor, value: Tensor, tokens: Bounds, texts: Bounds, rate: float) -> Tensor:
    """Attention over texts of several lengths with dropout, as PyTorch's nested tensors call it.

    Making these takes the host 2 to 3 ms a layer and pass, and ``varlen_attn`` has no dropout.

    Args:
        query: [Q, heads, D], half precision on a GPU.
        key, value: [T, heads, D].
        tokens: where the queries of each text are.
        texts: where its keys and values are.
        rate: of dropout.

    Returns:
        [Q, heads, D].
    """
    attention = torch.ops.aten._flash_attention_forward
    bounds = tokens.ends, texts.ends, tokens.longest, texts.longest
    out: Tensor = attention(query, key, value, *bounds, rate, False, False)[0]
    return out


def efficient(query: Tensor, key: Tensor, value: Tensor, tokens: Bounds, texts: Bounds, rate: float) -> Tensor:
    """The same in fp32 too and on older GPUs, but not for training with dropout; arguments as of ``flash``."""
    attention = torch.ops.aten._efficient_attention_forward
    trains = torch.is_grad_enabled() and query.requires_grad  # the backward pass needs the sums of exponentials
    row = (part.unsqueeze(0) for part in (query, key, value))
    bounds = tokens.ends, texts.ends, tokens.longest, texts.longest
    out: Tensor = attention(*row, None, *bounds, rate, 0, trains)[0]
    return out.squeeze(0)


def one_by_one(query: Tensor, key: Tensor, value: Tensor, tokens: Bounds, texts: Bounds, rate: float) -> Tensor:
    """The same anywhere, in a call for each text; arguments as of ``flash``."""
    parts = (query, tokens), (key, texts), (value, texts)
    split = [part.transpose(0, 1).split(bounds.ends.diff().tolist(), 1) for part, bounds in parts]
    found = [F.scaled_dot_product_attention(q, k, v, dropout_p=rate) for q, k, v in zip(*split, strict=True)]
    return torch.cat(found, 1).transpose(0, 1)


Visible = Tensor | Packing | FirstTokens | None
Layout = Rectangle | Packing


def layout(mask: Tensor | None, device: torch.device) -> Layout:
    """The layout of a batch with this padding on a device; ``mask`` as in ``Encoder.forward``.

    On a CPU batches are made of texts of like length, and padding is cheaper than a call for each text.
    """
    if mask is None:
        return Rectangle(None)
    if device.type == "cpu":
        return Rectangle(None if bool(mask.all()) else mask)
    packing = Packing(mask, device)
    return Rectangle(None) if len(packing.places) == mask.numel() else packing


def in_parts(run: Callable[..., Tensor], ids: Tensor, mask: Tensor, segments: Tensor | None = None) -> Tensor:
    """The output of an encoder for texts of unlike length.

    A CPU reads them in parts of like length, each padded to its own longest; others at once, since none is padded.

    Args:
        run: ``Encoder.forward`` or ``Encoder.embed``; the other arguments are theirs.

    Returns:
        [B, L, H], 0 behind the longest text of a part, or [B, D].
    """
    texts = [each for each in (ids, mask, segments) if each is not None]
    if ids.device.type != "cpu":
        return run(*texts)
    parts, found = parts_by_length(mask.numpy()), []
    for rows, longest in parts:
        made = run(*(each[rows, :longest] for each in texts))
        found.append(F.pad(made, (0, 0, 0, ids.shape[1] - longest)) if made.dim() == 3 else made)
    return torch.cat(found)[np.argsort(np.concatenate([rows for rows, _ in parts]))]


def attend(query: Tensor, key: Tensor, value: Tensor, visible: Visible, rate: float) -> Tensor:
    """Attention with dropout ``rate``.

    Args:
        query: [B, Q, heads, D] of a rectangle; [T, heads, D] of a row, or [B, heads, D] of its first tokens.
        key, value: [B, L, heads, D], or [T, heads, D].
        visible: a mask that broadcasts to [B, heads, Q, L], true where a query (row) may look; None for everywhere; or
            the packing of a row, or its first tokens.

    Returns:
        As ``query``.
    """
    if isinstance(visible, Packing | FirstTokens):
        return _attend(visible, query, key, value, rate)
    query, key, value = (part.transpose(1, 2) for part in (query, key, value))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=visible, dropout_p=rate).transpose(1, 2)

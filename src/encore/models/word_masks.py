"""Many whole-word masks of each text of a batch, drawn on the device that reads them (RetroMAE, section 3.3).

All chance is a hash of one number for each text and of what it is for (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
It computes with integers, so a GPU draws the masks that a CPU draws, and a text has the same ones in every batch.
"""

import torch
from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)  # as torch's signed numbers, whose products wrap around
STEPS = ((30, 0xBF58476D1CE4E5B9 - (1 << 64)), (27, 0x94D049BB133111EB - (1 << 64)), (31, 1))
OF_PICKS = 1 << 40  # where a text's counters of picks begin, above all those of its masks
PER_MASK = 1 << 20  # counters of a mask, one for each word
TURNS = 8


def visible(words: Tensor, numbers: Tensor, budgets: Tensor, mask: Tensor, most: int) -> Tensor:
    """The positions that each position sees in enhanced decoding: all that its mask does not hide, but never itself.

    A text has as many masks as tokens, at most ``most``, and each position picks one of them. A text's part of the
    result is the same in every batch.

    Args:
        words: int64 [B, L], the word of each position, counted from 0 in each text; -1 at what is never hidden.
        numbers: int64 [B], a text's chance.
        budgets: int64 [B], the pieces that a mask hides, as nearly as whole words allow and never more.
        mask: bool [B, L], true at real tokens.

    Returns:
        bool [B, L, L].
    """
    hidden = word_masks(words, numbers, budgets, min(words.shape[1], most))
    picks = picked(numbers, mask.sum(1).clamp(max=most), words.shape[1])
    own = hidden.gather(1, picks[:, :, None].expand(-1, -1, hidden.shape[2]))
    at = words[:, None].expand(-1, words.shape[1], -1)
    seen = ~(own.gather(2, at.clamp(min=0)) & (at >= 0)) & mask[:, None]
    seen.diagonal(dim1=1, dim2=2).fill_(False)
    return seen


def word_masks(words: Tensor, numbers: Tensor, budgets: Tensor, masks: int) -> Tensor:
    """Whole words in random order, each that a text's budget still has room for, in ``masks`` orders.

    A turn takes words up to the first that is longer than the room; a further turn, those behind it that are shorter.
    So a turn leaves less room than that word has pieces, and eight turns leave words out only where words of nine
    lengths come in just that order. A number that does not depend on the masks spares waiting for the device.

    Args:
        words, numbers, budgets: as of ``visible``.

    Returns:
        bool [B, masks, L], true at the chosen words of each text.
    """
    batch, length = words.shape
    pieces = words.new_zeros(batch, length + 1, dtype=torch.int32)  # the last: of what belongs to no word
    pieces.scatter_add_(1, words % (length + 1), torch.ones_like(words, dtype=torch.int32))
    order = orders(numbers, masks, length)
    sizes = pieces[:, None, :length].expand(-1, masks, -1).gather(2, order)
    room = budgets[:, None, None].int().expand(-1, masks, 1)
    chosen, left = torch.zeros_like(sizes, dtype=torch.bool), sizes > 0
    for _ in range(TURNS):
        left &= sizes <= room
        total = (sizes * left).cumsum(2, dtype=torch.int32)
        fits = left & (total <= room)
        chosen |= fits
        left &= ~fits
        room = room - (sizes * fits).sum(2, keepdim=True, dtype=torch.int32)
    return torch.zeros_like(chosen).scatter_(2, order, chosen)


def orders(numbers: Tensor, masks: int, words: int) -> Tensor:
    """The random orders of each text's words for its masks, int64 [B, masks, words]; ``numbers`` [B].

    A text with fewer words reads only its own, in the same order.
    """
    of_masks, of_words = (torch.arange(count, device=numbers.device) for count in (masks, words))
    return _chance(numbers[:, None, None], PER_MASK * of_masks[:, None] + of_words).argsort(2)


def picked(numbers: Tensor, masks: Tensor, length: int) -> Tensor:
    """The mask of each position, int64 [B, length], for texts that have ``masks`` [B] of them; ``numbers`` [B]."""
    positions = torch.arange(length, device=numbers.device)
    return _chance(numbers[:, None], OF_PICKS + positions) % masks[:, None]


def _chance(numbers: Tensor, counters: Tensor) -> Tensor:
    """63 random bits for each number and counter, int64, of the shape to which these broadcast."""
    state = numbers + GOLDEN * counters
    for shift, factor in STEPS:
        state = state ^ (state >> shift & (1 << 64 - shift) - 1)
        state = state * factor
    return state >> 1 & (1 << 63) - 1

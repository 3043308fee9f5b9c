"""Many whole-word masks of one text at once, for enhanced decoding (RetroMAE, section 3.3)."""

from __future__ import annotations

import numpy as np


def word_masks(starts: np.ndarray, n: int, count: int, masks: int, rng: np.random.Generator) -> np.ndarray:
    """Whole words in random order, each that ``count`` pieces still have room for, as often as asked.

    An order is that of random numbers with their words in the last bits: numbers sort faster than indices do.

    Args:
        starts: [W] first position of each word.
        n: pieces of the text.

    Returns:
        [masks, n] bool, true at chosen pieces; at most ``count`` in a row, and none where every word is longer.
    """
    lengths = np.diff(starts, append=n)
    keys = _keys(len(starts), masks, rng)
    ordered = np.sort(keys, axis=1)
    order = ordered & np.uint32((1 << _bits(len(starts))) - 1)
    sizes = lengths.astype(np.uint16)
    total = np.cumsum(sizes.take(order[:, : max(count, 1)]), axis=1, dtype=np.int32)  # a word has a piece at least
    number = np.count_nonzero(total <= count, axis=1)  # words before the first that overshoots
    within = np.minimum(number, len(starts) - 1)[:, None]
    first_left_out = np.take_along_axis(ordered, within, axis=1)
    chosen = (keys < first_left_out) | (number == len(starts))[:, None]
    before = np.take_along_axis(total, np.maximum(number - 1, 0)[:, None], axis=1)[:, 0]
    _fill_up(chosen, order, sizes, number, count - np.where(number > 0, before, 0))
    return chosen.take(np.repeat(np.arange(len(starts)), lengths), axis=1)


def _fill_up(chosen: np.ndarray, order: np.ndarray, sizes: np.ndarray, number: np.ndarray, room: np.ndarray) -> None:
    """Choose shorter words behind the first that overshot, one a turn, in the few rows that still have room."""
    rows = np.flatnonzero((room > 0) & (number < order.shape[1]))
    behind, sizes = np.arange(order.shape[1]), sizes.take(order[rows])
    number, room = number[rows], room[rows]
    while len(rows):
        fits = (behind >= number[:, None]) & (sizes <= room[:, None])
        place = fits.argmax(axis=1)
        found = np.flatnonzero(fits[np.arange(len(rows)), place])
        rows, sizes, place = rows[found], sizes[found], place[found]
        chosen[rows, order[rows, place]] = True
        room = room[found] - sizes[np.arange(len(rows)), place]
        again = np.flatnonzero(room > 0)
        rows, sizes, room, number = rows[again], sizes[again], room[again], place[again] + 1


def _keys(words: int, masks: int, rng: np.random.Generator) -> np.ndarray:
    """[masks, words] uint32, random but for the last bits, which are the word."""
    drawn = rng.integers(1 << 64, size=-(-masks * words // 2), dtype=np.uint64)  # two at a time, in half the time
    keys: np.ndarray = drawn.view(np.uint32)[: masks * words].reshape(masks, words)
    keys &= np.uint32((1 << 32) - (1 << _bits(words)))
    keys |= np.arange(words, dtype=np.uint32)
    return keys


def _bits(words: int) -> int:
    return words.bit_length()

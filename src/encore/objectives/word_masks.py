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
    sizes = lengths.astype(np.uint16).take(order)
    total = np.cumsum(sizes, axis=1, dtype=np.int32)
    number = np.count_nonzero(total <= count, axis=1)  # words before the first that overshoots
    within = np.minimum(number, len(starts) - 1)[:, None]
    first_left_out = np.take_along_axis(ordered, within, axis=1)
    chosen = (keys < first_left_out) | (number == len(starts))[:, None]
    before = np.take_along_axis(total, np.maximum(number - 1, 0)[:, None], axis=1)[:, 0]
    _fill_up(chosen, order, sizes, number, count - np.where(number > 0, before, 0))
    return np.repeat(chosen, lengths, axis=1)


def _fill_up(chosen: np.ndarray, order: np.ndarray, sizes: np.ndarray, number: np.ndarray, room: np.ndarray) -> None:
    """Choose shorter words behind the first that overshot, one a turn, in the few rows that still have room."""
    rows = np.flatnonzero(room > 0)
    number, room = number[rows], room[rows]
    while len(rows):
        fits = (np.arange(order.shape[1]) >= number[:, None]) & (sizes[rows] <= room[:, None])
        found = fits.any(axis=1)
        rows, room, place = rows[found], room[found], fits.argmax(axis=1)[found]
        chosen[rows, order[rows, place]] = True
        room = room - sizes[rows, place]
        again = room > 0
        rows, room, number = rows[again], room[again], place[again] + 1


def _keys(words: int, masks: int, rng: np.random.Generator) -> np.ndarray:
    """[masks, words] uint32, random but for the last bits, which are the word."""
    bits = np.uint32(_bits(words))
    drawn = rng.integers(1 << 32, size=(masks, words), dtype=np.uint32)
    keys: np.ndarray = (drawn >> bits << bits) | np.arange(words, dtype=np.uint32)
    return keys


def _bits(words: int) -> int:
    return words.bit_length()

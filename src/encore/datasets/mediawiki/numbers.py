"""Titles as numbers of 64 bits: millions fit into memory, and two of ten million are equal in one dump of 400,000."""

from hashlib import blake2b

import numpy as np

_ODD = 0x9E3779B97F4A7C15
_ALL = 2**64 - 1


def number(text: str) -> int:
    """The number of a title or a heading; never 0, which means that there is none."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") or 1


def combined(title: int, heading: int) -> int:
    """The number of a heading of a page."""
    return (title * _ODD + heading) & _ALL


def all_combined(titles: np.ndarray, headings: np.ndarray) -> np.ndarray:
    """``combined`` for arrays of uint64."""
    return titles * np.uint64(_ODD) + headings

"""Titles as MediaWiki compares them, what a title alone says about its page, and titles as numbers of 64 bits.

Millions of numbers fit into memory, and two of ten million are equal in one dump of 400,000.
"""

import html
import re
import unicodedata
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np

_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]")
_LISTING = re.compile(r"(?:Lists?|Index|Indexes|Outline) of .")
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(
    rf"{_MONTH}(?: \d{{1,2}}| \d{{3,4}})?|\d{{1,2}} {_MONTH}|(?:AD )?\d{{1,4}}s?(?: (?:AD|BC|BCE))?s?"
    r"|(?:Early |Mid-|Late )?\d{1,2}(?:st|nd|rd|th)(?: |-)(?:century|millennium)(?: (?:AD|BC|BCE))?"
)
_ODD = 0x9E3779B97F4A7C15
_ALL = 2**64 - 1


class Target(NamedTuple):
    """Where a link or a redirect leads: a page's title, and a heading of it or nothing."""

    title: str
    heading: str = ""


def target(written: str) -> Target:
    """``[[ help:foo_bar#Baz ]]`` as (``Help:foo bar``, ``Baz``); the title is empty for a place of the same page."""
    text = unquote(written) if "%" in written else written
    text = unicodedata.normalize("NFC", html.unescape(text))
    title, _, heading = text.partition("#")
    return Target(normal(title), heading_key(heading))


def normal(title: str) -> str:
    """A title's one spelling: single blanks, no underscores, no invisible marks, its first letter capital."""
    blank = " ".join(_UNSEEN.sub("", title).replace("_", " ").split()).removeprefix(":").strip()
    return blank[:1].upper() + blank[1:]


def heading_key(heading: str) -> str:
    """A heading as fragments of addresses name it."""
    return " ".join(_UNSEEN.sub("", heading).replace("_", " ").split())


def is_listing(title: str) -> bool:
    """Lists, indexes and outlines: pages of links, without prose."""
    return _LISTING.match(title) is not None


def is_date(title: str) -> bool:
    """Days, months, years, decades, centuries and millennia."""
    return _DATE.fullmatch(title) is not None


def number(text: str) -> int:
    """The number of a title or a heading; never 0, which means none."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") or 1


def combined(title: int, heading: int) -> int:
    """The number of a heading of a page."""
    return (title * _ODD + heading) & _ALL


def all_combined(titles: np.ndarray, headings: np.ndarray) -> np.ndarray:
    """``combined`` for arrays of uint64."""
    return titles * np.uint64(_ODD) + headings

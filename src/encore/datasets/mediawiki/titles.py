"""Titles as MediaWiki compares them, what a title alone says about its page, and titles as numbers of 64 bits.

Millions of numbers fit into memory, and two of ten million are equal in one dump of 400,000.
"""

import html
import re
import unicodedata
from hashlib import blake2b
from urllib.parse import unquote

_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]")
# Lists, indexes and outlines: pages of links, without prose.
LISTING = re.compile(r"(?:Lists?|Index|Indexes|Outline) of .")
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
# Days, months, years, decades, centuries and millennia.
DATE = re.compile(
    rf"{_MONTH}(?: \d{{1,2}}| \d{{3,4}})?|\d{{1,2}} {_MONTH}|(?:AD )?\d{{1,4}}s?(?: (?:AD|BC|BCE))?s?"
    r"|(?:Early |Mid-|Late )?\d{1,2}(?:st|nd|rd|th)(?: |-)(?:century|millennium)(?: (?:AD|BC|BCE))?"
)


def target(written: str) -> str:
    """The page that ``[[ help:foo_bar#Baz ]]`` leads to, ``Help:foo bar``; empty for a place of the same page."""
    text = unquote(written) if "%" in written else written
    return normal(unicodedata.normalize("NFC", html.unescape(text)).partition("#")[0])


def normal(title: str) -> str:
    """A title's one spelling: single blanks, no underscores, no invisible marks, its first letter capital."""
    blank = " ".join(_UNSEEN.sub("", title).replace("_", " ").split()).removeprefix(":").strip()
    return blank[:1].upper() + blank[1:]


def number(text: str) -> int:
    """The number of a title."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")

"""What templates say: a few print words of a sentence, some tell what kind of page it is; all others are dropped."""

import re
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

# The templates that print the first, or the last, of their unnamed arguments.
_FIRST = re.compile(
    "nowrap|nobr|nobreak|small|smaller|big|larger|abbr|tooltip|sup|sub|em|strong|ill|interlanguage link|sic|formatnum"
    "|bold|italic|flag|flagcountry|nihongo4?|(?:block|c)?quote"
)
_LAST = re.compile("langx?|transl|transliteration|wikt-lang")
_LITERAL = {
    **dict.fromkeys(["ndash", "snd", "spnd", "spaced ndash", "spaced en dash"], " \u2013 "),
    **dict.fromkeys(["mdash", "em dash"], "\u2014"),
    **dict.fromkeys(["nbsp", "space", "spaces"], " "),
    "en dash": "\u2013",
    "'": "'",
    "'s": "'s",
    "okina": "\u02bb",
}
# What a template prints before its first argument.
_BEFORE = {
    **dict.fromkeys(["circa", "c."], "c. "),
    **dict.fromkeys(["us$", "usd"], "US$"),
    **dict.fromkeys(["\u00a3", "gbp"], "\u00a3"),
    **dict.fromkeys(["\u20ac", "euro"], "\u20ac"),
    "as of": "As of ",
    "uss": "USS ",
    "hms": "HMS ",
    "ss": "SS ",
}
_BETWEEN = {"to": "to", "and": "and", "or": "or", "by": "by", "x": "by", "-": "\u2013", "\u2013": "\u2013"}
_DISAMBIGUATION = re.compile(
    "(?:disambig(?:uation)?(?: cleanup| page)?|disamb|dab|hndis|geodis|numberdis|roaddis|schooldis|hospitaldis"
    "|callsigndis|call sign disambiguation|letter-numbercombdisambig|mil-unit-dis|mathdab|set index(?: article)?|sia"
    "|ship ?index|mountain ?index|(?:human name|place name|airport|biology|species latin name|chinese title|genus"
    "|letter\u2013number combination|latin name|mathematical|mathematics|military unit|music|number|opus number"
    "|phonetics|portal|road|school|church|hospital|taxonomy|taxonomic authority|template|wikipedia"
    "|case law|election|storm|place|name|title|station|synagogue|temple) disambig(?:uation)?)"
)


def normal(name: str) -> str:
    """A template's name as it is compared: lower case, single blanks."""
    return " ".join(name.replace("_", " ").split()).lower()


def tells_disambiguation(name: str) -> bool:
    """Whether a page that uses a template of this (normal) name only lists what a name may mean."""
    return _DISAMBIGUATION.fullmatch(name) is not None


def printed(name: str, arguments: Sequence[T]) -> list[T | str]:
    """What a template of this (normal) name prints, from its unnamed arguments; nothing for most."""
    if name in _LITERAL:
        return [_LITERAL[name]]
    if name.startswith("formatnum:"):
        return [name.partition(":")[2]]
    if not arguments:
        return []
    if _FIRST.fullmatch(name) or _LAST.fullmatch(name):
        return [arguments[0 if _FIRST.fullmatch(name) else -1]]
    if name == "linktext":
        return list(arguments)
    if name in _BEFORE:
        return [_BEFORE[name], arguments[0]]
    return _measured(arguments) if name in ("convert", "cvt") else []


def _measured(arguments: Sequence[T]) -> list[T | str]:
    """``{{convert|5|to|10|km}}``: the numbers and their unit as written, without the conversion."""
    between = _BETWEEN.get(str(arguments[1]).strip()) if len(arguments) > 3 else None
    if between:
        return [arguments[0], f" {between} ", arguments[2], " ", arguments[3]]
    return [arguments[0], " ", arguments[1]] if len(arguments) > 1 else []

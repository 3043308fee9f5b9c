"""Wiki markup as sections of paragraphs: prose and its links stay; templates, tables, lists, notes and files go.

Titles are compared as MediaWiki compares them. In memory they are numbers of 64 bits: two of ten million are equal in
one dump of 400,000.
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

import mwparserfromhell
from mwparserfromhell import nodes
from mwparserfromhell.wikicode import Wikicode

from encore.data.sentences import split

_INLINE = re.compile(
    "b|i|em|strong|u|small|big|sub|sup|span|q|cite|abbr|dfn|ins|var|samp|kbd|tt|code|font|nowiki|noinclude|onlyinclude"
    "|bdi|bdo|mark|time"
)
_BLOCK = re.compile("p|div|center|blockquote|poem")
_DROPPED_PAGES = frozenset(["file", "image", "category"])
_LANGUAGE = re.compile(r"(?!mw:)[a-z]{2,3}(?:-[a-z-]+)?:\S|simple:\S")
# What MediaWiki, too, takes out before it reads the rest; half of an article's markup is notes.
_SET_APART = re.compile(
    r"<!--.*?(?:-->|\Z)|(<nowiki>.*?</nowiki>)"
    r"|<(ref|math|chem|gallery|timeline|score|syntaxhighlight|source|pre|hiero|imagemap|templatestyles|templatedata)\b"
    r"(?:[^>]*/>|[^>]*>.*?</\2\s*>)",
    re.DOTALL | re.IGNORECASE,
)
_LIST = tuple("*#:;|!")
_QUOTES = re.compile("'{2,5}")
_POSSESSIVE = re.compile(r"(?<=\w)'''(?=s\b)")
_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff]|__[A-Z]{3,}__|</?[A-Za-z][^<>]*>")
_EMPTY_BRACKETS = re.compile(r"\s*\(\s*(?:[,;:/\u2013-]\s*)*\)|\s*\[\s*\]")
_OPENED_BADLY = re.compile(r"\(\s*(?:[,;:]\s*)+|\(\s+")
_CLOSED_BADLY = re.compile(r"\s*(?:[,;:]\s*)+\)|\s+\)")
_BLANK_BEFORE = re.compile(r"\s+(?=[,;:.](?:\s|$))")
_LEFT_OVER = re.compile(r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|<!--|-->|<ref\b")
_ENDS = tuple(".!?\u2026")
_AFTER_END = "\"'\u201d\u2019)]"


class LinkedParagraph(NamedTuple):
    """Plain text on one line, and where its links lead, in order."""

    text: str
    links: tuple[str, ...]


@dataclass
class Section:
    """The text below a heading; the lead has level 0 and no title."""

    level: int
    title: str
    paragraphs: list[LinkedParagraph] = field(default_factory=list)


@dataclass
class PageText:
    """A page's sections, the lead first, and what was seen on the way."""

    sections: list[Section]
    disambiguation: bool = False
    left_over: int = 0  # paragraphs dropped because markup stayed in them


class _Heading(NamedTuple):
    level: int
    title: str


class _Label(NamedTuple):
    text: str
    to: str


class _Found(NamedTuple):
    text: str
    labels: list[_Label]


_Piece = str | _Label | _Heading


def read_markup(markup: str) -> PageText:
    """The text of a page.

    Sentences that end like one stay. Lines of lists, tables and indented formulas are not prose, nor is what introduces
    them with a colon: it ends a paragraph, whose whole sentences before it stay.
    """
    code = mwparserfromhell.parse(_SET_APART.sub(lambda found: found[1] or "", markup), skip_style_tags=True)
    text = PageText([Section(0, "")])
    text.disambiguation = "__DISAMBIG__" in markup or any(
        _DISAMBIGUATION.fullmatch(template_name(str(node.name)))
        for node in code.nodes
        if isinstance(node, nodes.Template)
    )
    for found in _paragraphs(_pieces(code)):
        if isinstance(found, _Heading):
            text.sections.append(Section(found.level, _clean(found.title)))
        elif _LEFT_OVER.search(found.text):
            text.left_over += 1
        elif kept := _whole(found.text):
            links = (label.to for label in found.labels if kept == found.text or _clean(label.text) in kept)
            text.sections[-1].paragraphs.append(LinkedParagraph(kept, tuple(links)))
    return text


def _paragraphs(pieces: Iterable[_Piece]) -> Iterator[_Heading | _Found]:
    """Lines joined to paragraphs, up to blank lines, headings and lines of lists, which are left out."""
    words: list[str] = []
    labels: list[_Label] = []
    for line in _lines(pieces):
        prose = [] if isinstance(line, _Heading) else _prose(line)
        if prose:
            words += [*(piece if isinstance(piece, str) else piece.text for piece in prose), "\n"]
            labels += [piece for piece in prose if isinstance(piece, _Label)]
            continue
        if words:
            yield _Found(_clean("".join(words)), labels)
            words, labels = [], []
        if isinstance(line, _Heading):
            yield line
    if words:
        yield _Found(_clean("".join(words)), labels)


def _prose(line: list[str | _Label]) -> list[str | _Label]:
    """A line, or nothing if it is blank or belongs to a list or a table."""
    start = next((text for piece in line if (text := (piece if isinstance(piece, str) else piece.text).strip())), "")
    return [] if not start or start.startswith(_LIST) or start.startswith(("{|", "|}", "----")) else line


def _lines(pieces: Iterable[_Piece]) -> Iterator[list[str | _Label] | _Heading]:
    line: list[str | _Label] = []
    for piece in pieces:
        if isinstance(piece, _Heading):
            yield line
            yield piece
            line = []
        elif isinstance(piece, str):
            first, *others = piece.split("\n")
            line.append(first)
            for other in others:
                yield line
                line = [other]
        else:
            line.append(piece)
    yield line


def _pieces(code: Wikicode) -> Iterator[_Piece]:
    """The text, links and headings of parsed markup, in order."""
    for node in code.nodes:
        if isinstance(node, nodes.Text):
            yield node.value
        elif isinstance(node, nodes.Wikilink):
            yield from _link(node)
        elif isinstance(node, nodes.Template):
            yield from _template(node)
        elif isinstance(node, nodes.Tag):
            yield from _tag(node)
        elif isinstance(node, nodes.Heading):
            yield _Heading(node.level, _flat(node.title))
        elif isinstance(node, nodes.ExternalLink):
            yield from _pieces(node.title) if node.title else ()
        elif isinstance(node, nodes.HTMLEntity):
            yield node.normalize()


def _tag(tag: nodes.Tag) -> Iterator[_Piece]:
    name = str(tag.tag).strip().lower()
    if tag.wiki_markup and name in ("li", "dt", "dd"):
        yield str(tag.wiki_markup)  # the line's own text follows next to it
    elif name in ("br", "hr"):
        yield "\n\n" if name == "hr" else " "
    elif _BLOCK.fullmatch(name):
        yield "\n\n"
        yield from _pieces(tag.contents) if tag.contents else ()
        yield "\n\n"
    elif _INLINE.fullmatch(name):
        yield from _pieces(tag.contents) if tag.contents else ()


def _template(template: nodes.Template) -> Iterator[_Piece]:
    unnamed = [parameter.value for parameter in template.params if str(parameter.name).strip().isdigit()]
    for part in printed(template_name(str(template.name)), unnamed):
        yield from [part] if isinstance(part, str) else _pieces(part)


def _link(link: nodes.Wikilink) -> Iterator[_Piece]:
    """A link's label; nothing for files, categories and the same article in other languages."""
    written = str(link.title).strip()
    space = written.partition(":")[0].strip().lower()
    if space in _DROPPED_PAGES or _LANGUAGE.match(written):
        return
    title = _flat(link.title)
    label = _flat(link.text) if link.text is not None else ""
    yield _Label((label if label.strip() else title.removeprefix(":")).replace("\n", " "), target(title))


def _flat(code: Wikicode) -> str:
    """Markup as one string, without what a label cannot have."""
    pieces = (piece for piece in _pieces(code) if not isinstance(piece, _Heading))
    return "".join(piece if isinstance(piece, str) else piece.text for piece in pieces)


def _clean(text: str) -> str:
    """Text without quotes for italics, marks that nobody sees, and the holes that dropped templates leave."""
    text = " ".join(_UNSEEN.sub("", _QUOTES.sub("", _POSSESSIVE.sub("'", text))).split())
    text = _CLOSED_BADLY.sub(")", _OPENED_BADLY.sub("(", _EMPTY_BRACKETS.sub("", text)))
    return _BLANK_BEFORE.sub("", text).strip()


def _whole(text: str) -> str:
    """A paragraph's sentences; the last only if it ends like one. Nothing if none has a word."""
    ended = text.rstrip(_AFTER_END).endswith(_ENDS)
    kept = text if ended else " ".join(split(text)[:-1])
    return kept if any(map(str.isalpha, kept)) else ""


_T = TypeVar("_T")

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
# The templates of pages that only list what a name may mean.
_DISAMBIGUATION = re.compile(
    "(?:disambig(?:uation)?(?: cleanup| page)?|disamb|dab|hndis|geodis|numberdis|roaddis|schooldis|hospitaldis"
    "|callsigndis|call sign disambiguation|letter-numbercombdisambig|mil-unit-dis|mathdab|set index(?: article)?|sia"
    "|ship ?index|mountain ?index|(?:human name|place name|airport|biology|species latin name|chinese title|genus"
    "|letter\u2013number combination|latin name|mathematical|mathematics|military unit|music|number|opus number"
    "|phonetics|portal|road|school|church|hospital|taxonomy|taxonomic authority|template|wikipedia"
    "|case law|election|storm|place|name|title|station|synagogue|temple) disambig(?:uation)?)"
)


def template_name(name: str) -> str:
    """A template's name as it is compared: lower case, single blanks."""
    return " ".join(name.replace("_", " ").split()).lower()


def printed(name: str, arguments: Sequence[_T]) -> list[_T | str]:
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


def _measured(arguments: Sequence[_T]) -> list[_T | str]:
    """``{{convert|5|to|10|km}}``: the numbers and their unit as written, without the conversion."""
    between = _BETWEEN.get(str(arguments[1]).strip()) if len(arguments) > 3 else None
    if between:
        return [arguments[0], f" {between} ", arguments[2], " ", arguments[3]]
    return [arguments[0], " ", arguments[1]] if len(arguments) > 1 else []


_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]")
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
    blank = " ".join(_INVISIBLE.sub("", title).replace("_", " ").split()).removeprefix(":").strip()
    return blank[:1].upper() + blank[1:]


def number(text: str) -> int:
    """The number of a title."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")

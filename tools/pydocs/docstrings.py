"""One docstring: its summary (the query), its body in sentences, and the objects that it points to.

Docstrings come in three dialects (numpydoc, Google, field lists) and none; a section is told by its underlined heading
or by a known heading that ends with a colon.
"""

import inspect
import re
from typing import NamedTuple

from encore.data import sentences
from tools.pydocs import markup
from tools.pydocs.blocks import dedent_of, is_underline, paragraphs, prose_lines

_DROPPED = re.compile(
    r"(?i)(see also|seealso|examples?|references?|usages?|bibliography|authors?|copyright|licen[cs]e|version)\b"
)
_SEE_ALSO = re.compile(r"(?i)see ?also")
_ITEM_SECTION = re.compile(
    "(?i)(other |keyword )?(parameters|params|arguments|args|kwargs|options|fields|attributes|properties|methods)"
    "|returns?|return value|yields?|receives|raises?|warns"
)
_COLON_HEADING = re.compile(
    r"(?i)(args|arguments|keyword arguments|keyword args|parameters|returns|yields|raises|attributes|examples?|"
    r"example usage|notes?|see also|references?|usage|todo|properties|methods|author|authors|return value)\s*:"
)
_BARE_HEADING = re.compile(r"(?i)(see also|examples?|references|usage)\s*:?")
_SIGNATURE = re.compile(r"[\w.]+(\[[^\]]*\])?\s?\(.*\)(\s*->\s*[^.]*)?:?", re.DOTALL)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\(?\d{1,2}[.)]|\(?[a-z]\))\s+")
_FIELD = re.compile(r"\s*:(?P<kind>\w+)(?:\s+(?P<name>[\w*, .]+))?:(?:\s+(?P<text>.*))?")
_LABEL = re.compile(r"\s*[*\w.()]+(?:\s*:|\s+--?)\s+\S")
_NOT_PROSE = re.compile(
    rf"(?i){markup.CUT}|\\[a-z]{{2,}}|^#|^\W*(see also|(new|added|changed|deprecated|removed) (in|since)|versionadded"
    r"|versionchanged|read more in the|for (an?|more|some|usage) examples?|see for|todo|xxx|fixme|copyright"
    r"|written by|no warranty|see\b.{0,40}$)\b"
)

Section = tuple[str, list[str]]  # heading and lines


class Docstring(NamedTuple):
    """A docstring taken apart. Names in ``see_also`` and ``references`` are as written, not yet resolved."""

    summary: str
    sentences: tuple[str, ...]
    see_also: tuple[str, ...]
    references: tuple[str, ...]


def parse(docstring: str) -> Docstring:
    """Take a docstring apart; everything that is not prose is left out."""
    lines, see_also = prose_lines(inspect.cleandoc(docstring))
    sections = _sections(lines)
    listed = [name for content in (see_also, *_see_also(sections)) for name in _listed(content)]
    summary, texts = _summary(_texts(sections))
    words = (_ended(markup.plain(text)) for text in texts)
    return Docstring(
        markup.plain(summary),
        tuple(sentence for text in words for sentence in sentences.split(text) if is_prose(sentence)),
        tuple(dict.fromkeys(listed)),
        tuple(dict.fromkeys(name for text in (summary, *texts) for name in markup.references(text))),
    )


def _ended(text: str) -> str:
    """A table's entry or a bullet often lacks its full stop, and would run into the next one."""
    return f"{text}." if text and (text[-1].isalnum() or text[-1] in ")]\"'") and " " in text else text


def is_prose(sentence: str) -> bool:
    """Whether a sentence says something by itself: nothing was cut out of it, and it is no version note or pointer."""
    return " " in sentence and not _NOT_PROSE.search(sentence) and sum(map(str.isalpha, sentence)) >= 3


def _sections(lines: list[str]) -> list[Section]:
    """Headings with their lines; what comes before the first heading has an empty one."""
    sections: list[Section] = [("", [])]
    number = 0
    while number < len(lines):
        text = lines[number].strip()
        if is_underline(text):
            pass  # the rule above a heading, or a rule between paragraphs
        elif text and number + 1 < len(lines) and is_underline(lines[number + 1]):
            sections.append((text.rstrip(":"), []))
            number += 1
        elif _is_bare_heading(lines, number):
            sections.append((text.rstrip(" :"), []))
        else:
            sections[-1][1].append(lines[number])
        number += 1
    return sections


def _see_also(sections: list[Section]) -> list[list[str]]:
    return [content for heading, content in sections if _SEE_ALSO.match(heading)]


def _listed(content: list[str]) -> list[str]:
    """Names in a See Also section; what is indented deeper describes them."""
    base = dedent_of(content)
    return [name for line in content if len(line) - len(line.lstrip()) == base for name in markup.names(line)]


def _texts(sections: list[Section]) -> list[str]:
    """The paragraphs of all sections that are kept, each on one line."""
    texts = [sections[1][0]] if len(sections) > 1 and _is_title(*sections[:2]) else []
    for heading, content in sections:
        if not _DROPPED.match(heading):
            texts += _items(content) if _ITEM_SECTION.fullmatch(heading) else _running(content)
    return texts


def _is_title(before: Section, first: Section) -> bool:
    """Whether a docstring opens with a heading that names no section: many modules say so what they are about."""
    heading = first[0]
    known = _DROPPED.match(heading) or _ITEM_SECTION.fullmatch(heading) or re.match("(?i)notes?$", heading)
    return not any(line.strip() for line in before[1]) and not known


def _is_bare_heading(lines: list[str], number: int) -> bool:
    """``Args:`` followed by something, or ``See Also`` on a line of its own between blank lines."""
    line = lines[number]
    if _COLON_HEADING.fullmatch(line.strip()) and len(line) - len(line.lstrip()) <= 4:
        return True
    alone = number == 0 or not lines[number - 1].strip()
    return alone and _BARE_HEADING.fullmatch(line) is not None


def _summary(texts: list[str]) -> tuple[str, list[str]]:
    """The first sentence of the first paragraph that is no signature and no bare name, and all that follows."""
    texts = list(texts)
    while texts and (_SIGNATURE.fullmatch(texts[0]) or (len(texts) > 1 and len(texts[0].split()) == 1)):
        texts.pop(0)
    if not texts:
        return "", []
    first, *rest = sentences.split(texts[0]) or [""]
    return first, [" ".join(rest), *texts[1:]] if rest else texts[1:]


def _running(lines: list[str]) -> list[str]:
    """Paragraphs as one line each; bullets, fields, labelled lines and signatures stand by themselves."""
    return [text for paragraph in paragraphs(lines) for text in _pieces(paragraph) if text]


def _pieces(paragraph: list[str]) -> list[str]:
    listed = sum(_LABEL.match(line) is not None for line in paragraph) > 1
    pieces: list[str] = []
    for line in paragraph:
        if field := _FIELD.fullmatch(line):
            pieces.append(_field(field))
        elif _starts_piece(line, listed) or not pieces or _SIGNATURE.fullmatch(pieces[-1]):
            pieces.append(_BULLET.sub("", line, count=1).strip())
        else:
            pieces[-1] += " " + line.strip()
    return pieces


def _starts_piece(line: str, listed: bool) -> bool:
    return bool(_BULLET.match(line) or (listed and _LABEL.match(line)))


def _field(field: re.Match[str]) -> str:
    """``:param x: text`` -> ``x: text``; types by themselves are left out."""
    if field["kind"] in {"type", "rtype", "vartype"}:
        return ""
    return f"{field['name']}: {field['text'] or ''}" if field["name"] else field["text"] or ""


def _items(lines: list[str]) -> list[str]:
    """The entries of a parameter table: ``x (array_like): Input data.`` and what else stands under it."""
    base = dedent_of(lines)
    entries: list[list[str]] = []
    for line in lines:
        if line.strip() and len(line) - len(line.lstrip()) == base:
            entries.append([line.strip()])
        elif entries:
            entries[-1].append(line)
    return [text for head, *rest in entries for text in _entry(head, _running(rest))]


def _entry(head: str, rest: list[str]) -> list[str]:
    head = _BULLET.sub("", head, count=1)
    name, colon, kind = head.partition(" : ")
    if colon and rest:
        return [f"{name.strip()} ({kind.strip()}): {rest[0]}", *rest[1:]]
    if rest and not head.endswith((".", ":", ",")) and ": " not in head:
        return [f"{head}: {rest[0]}", *rest[1:]]
    return [" ".join([head, *rest[:1]]), *rest[1:]]

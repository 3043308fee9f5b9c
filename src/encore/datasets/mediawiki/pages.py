"""What is kept of pages: rows of articles, whose links are still numbers of titles, and a list of titles.

A batch goes to another process and comes back as a few flat arrays.
"""

from __future__ import annotations

import gzip
import json
import re
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from mwparserfromhell.parser import ParserError

from encore.data.sentences import split
from encore.datasets.mediawiki import markup
from encore.datasets.mediawiki.dump import Page, StreamBlock, read_pages
from encore.datasets.mediawiki.markup import DATE, LISTING, PageText, Section, normal, number, target

_REDIRECT = re.compile(r"\s*#redirect\s*:?\s*\[\[([^\]|]+)", re.IGNORECASE)
# Sections that hold no prose of the article's own, with all below them.
_APPARATUS = re.compile(
    "(?:general )?references|(?:foot|end)?notes|notes and references|references and notes|citations|sources"
    "|bibliography|works cited|external links|see also|further reading",
    re.IGNORECASE,
)


class Outcome(IntEnum):
    """What became of a page of the main namespace."""

    ARTICLE = 0
    DATE = 1  # an article too, but links to it say nothing
    REDIRECT = 2
    DISAMBIGUATION = 3
    LISTING = 4
    EMPTY = 5
    OVERSIZED = 6
    UNREADABLE = 7


@dataclass
class Extracted:
    """What a batch of pages gave, or all pages of a dump: about 40 bytes a page; numbers are those of ``titles.py``."""

    rows: bytes = b""  # packed JSON lines, one an article: id, title, sections, links
    titles: array[int] = field(default_factory=lambda: array("Q"))  # of every page of the main namespace
    outcomes: array[int] = field(default_factory=lambda: array("b"))  # next to ``titles``
    ids: array[int] = field(default_factory=lambda: array("q"))  # of the articles
    redirects: array[int] = field(default_factory=lambda: array("Q"))  # the title that each of them leads to
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, later: Extracted) -> None:
        """Take in what the dump's next batch gave, but for its rows."""
        for name in ("titles", "outcomes", "ids", "redirects"):
            getattr(self, name).extend(getattr(later, name))
        self.counts.update(later.counts)


def extract(source: Sequence[Page] | StreamBlock) -> Extracted:
    """Read a batch of pages, or a block of a multistream dump."""
    pages = read_pages(source) if isinstance(source, StreamBlock) else source
    extracted = Extracted()
    lines = []
    for page in pages:
        if page.namespace or page.model != "wikitext":
            extracted.counts["other_namespaces" if page.namespace else "other_models"] += 1
            continue
        outcome, line = _read(page, extracted)
        extracted.titles.append(number(normal(page.title)))
        extracted.outcomes.append(outcome)
        if line:
            lines.append(line)
    extracted.rows = gzip.compress("".join(lines).encode(), 1)
    return extracted


def _read(page: Page, extracted: Extracted) -> tuple[Outcome, str]:
    """What a page is, and of an article its row."""
    if page.text is None:
        return Outcome.OVERSIZED, ""
    written = _REDIRECT.match(page.text)
    if to := target(written[1] if written else page.redirect or ""):
        extracted.redirects.append(number(to))
        return Outcome.REDIRECT, ""
    title = normal(page.title)
    if LISTING.match(title):
        return Outcome.LISTING, ""
    try:
        text = markup.read_markup(page.text)
    except (ParserError, RecursionError):
        return Outcome.UNREADABLE, ""
    if text.disambiguation or title.endswith("(disambiguation)"):
        return Outcome.DISAMBIGUATION, ""
    line = _row(page, title, text)
    if not line:
        return Outcome.EMPTY, ""
    extracted.ids.append(int(page.id))
    extracted.counts["paragraphs_with_markup"] += text.left_over
    return Outcome.DATE if DATE.fullmatch(title) else Outcome.ARTICLE, line


def _row(page: Page, title: str, text: PageText) -> str:
    """An article as a JSON line, or nothing if it has no sentence. The lead stays, even without a sentence."""
    sections = _without_apparatus(text.sections)
    sentences = [[sentence for paragraph in each.paragraphs for sentence in split(paragraph.text)] for each in sections]
    if not any(sentences):
        return ""
    kept = [pair for index, pair in enumerate(zip(sections, sentences, strict=True)) if pair[1] or index == 0]
    links = [
        [place, number(link or title)]
        for place, (section, _) in enumerate(kept)
        for paragraph in section.paragraphs
        for link in paragraph.links
    ]
    written = [[section.title, own] for section, own in kept]
    return json.dumps([page.id, title, written, links], ensure_ascii=False, separators=(",", ":")) + "\n"


def _without_apparatus(sections: list[Section]) -> list[Section]:
    kept, below = [], 0
    for section in sections:
        if below and section.level > below:
            continue
        below = section.level if _APPARATUS.fullmatch(section.title) else 0
        if not below:
            kept.append(section)
    return kept

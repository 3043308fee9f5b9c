"""A dump as a collection in the common form, and where its links lead: titles through redirects to articles."""

import gzip
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from encore.data.articles import article, write_article_collection
from encore.data.collection import Row
from encore.datasets.mediawiki import dump
from encore.datasets.mediawiki.pages import Extracted, Outcome, extract
from encore.storage.processes import shared_in_order

HOPS = 8  # redirects after another; MediaWiki follows one, and its robots fix longer chains
_MISSING, _LOOP = -1, -2  # positions that are none
_REASONS = {-each.value: each.name.lower() for each in Outcome}


class Links:
    """Answers where links lead, and counts those that lead nowhere by reason."""

    def __init__(self, known: Extracted) -> None:
        """``known``: what all pages of a dump gave, added up."""
        titles, outcomes = np.array(known.titles, dtype=np.uint64), np.array(known.outcomes, dtype=np.int8)
        is_article = outcomes <= Outcome.DATE
        # An article's number, or an outcome below 0.
        codes = np.where(is_article, np.cumsum(is_article, dtype=np.int32) - 1, -outcomes)
        order = np.argsort(titles, kind="stable")
        first = np.diff(titles[order], prepend=~titles[order][:1]) != 0  # of equal titles the dump's first counts
        repeated = codes[order[~first]]
        order = order[first]
        to = np.zeros(len(titles), dtype=np.uint64)
        to[outcomes == Outcome.REDIRECT] = np.array(known.redirects, dtype=np.uint64)
        self._titles, self._codes = titles[order], codes[order]
        self._final = self._followed(to[order])
        self._hidden = outcomes[is_article] == Outcome.DATE
        self._ids = np.array(known.ids, dtype=np.int64)
        self.repeated = frozenset(repeated[repeated >= 0].tolist())
        self.removed: Counter[str] = Counter()
        self.pages = {
            **{each.name.lower(): int((self._codes == -each).sum()) for each in Outcome if each > Outcome.DATE},
            "article": int((self._codes >= 0).sum()),
            "repeated_title": len(repeated),
        }
        redirected = self._final[self._codes == -Outcome.REDIRECT]
        self.lost = {"missing": int((redirected == _MISSING).sum()), "loop": int((redirected == _LOOP).sum())}

    def of(self, article: int, written: list[list[int]]) -> list[Row]:
        """The links of an article, from what its row says: section and title.

        A page that is linked to twice from a section counts once.
        """
        if not written:
            return []
        sections, titles = np.array(written, dtype=np.uint64).T
        entry = self._find(titles)
        final = np.where(entry >= 0, self._final[entry], _MISSING)
        found: dict[tuple[int, int], None] = {}
        for section, at in zip(sections.tolist(), final.tolist(), strict=True):
            code = int(self._codes[at])
            reason = self._reason(article, at, code)
            if reason:
                self.removed[reason] += 1
            else:
                found.setdefault((section, code))
        return [
            {"section": section, "to": str(self._ids[number]), "anchor": 0, "origin": "link"}
            for section, number in found
        ]

    def _reason(self, article: int, at: int, code: int) -> str | None:
        if at < 0:
            return "loop" if at == _LOOP else "missing"
        if code == article:
            return "self"
        return _REASONS[code] if code < 0 else "date" if self._hidden[code] else None

    def _find(self, titles: np.ndarray) -> np.ndarray:
        """Position of each title among all, ``_MISSING`` for unknown ones."""
        if not len(self._titles):
            return np.full(len(titles), _MISSING)
        place = np.minimum(np.searchsorted(self._titles, titles), len(self._titles) - 1)
        return np.where(self._titles[place] == titles, place, _MISSING)

    def _followed(self, to: np.ndarray) -> np.ndarray:
        """The position where the redirects of every title end, ``_MISSING`` or ``_LOOP``."""
        own = np.arange(len(self._titles))
        redirects = self._codes == -Outcome.REDIRECT
        step = np.where(redirects, self._find(to), own)
        at = own.copy()
        for _ in range(HOPS):
            at = np.where(at >= 0, step[at], _MISSING)
        return np.where((at >= 0) & redirects[at], _LOOP, at)


_TOLD = 100_000  # pages between two lines that say how far it is


def write_articles(source: Path, folder: Path, processes: int) -> dict[str, Any]:
    """Write the articles of a dump as a collection and return its counts.

    The dump is read once. What its pages say waits in a temporary file until all titles are known.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = Extracted()
    print(f"reading {source}", flush=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        seen = 0
        for extracted in shared_in_order(extract, dump.parts(source), processes):
            known.add(extracted)
            file.write(extracted.rows)
            before, seen = seen, seen + len(extracted.titles) + sum(extracted.counts.values())
            if seen // _TOLD > before // _TOLD:
                print(f"{seen} pages", flush=True)
        print(f"{len(known.ids)} articles among {len(known.titles)} titles", flush=True)
        links = Links(known)
        statistics = {
            "pages": {**links.pages, **{name: known.counts[name] for name in ("other_namespaces", "other_models")}},
            "redirects_lost": links.lost,
            "links_removed": links.removed,  # filled while the articles are written
            "paragraphs_with_markup": known.counts["paragraphs_with_markup"],
        }
        file.seek(0)
        rows = gzip.GzipFile(fileobj=file)
        articles = (
            article(page, title, sections, links.of(number, written))
            for number, (page, title, sections, written) in enumerate(map(json.loads, rows))
            if number not in links.repeated
        )
        return write_article_collection(folder, articles, statistics, processes)

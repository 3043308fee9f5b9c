"""Writing a collection's articles as they come: none is held, only how many sections each one has.

A collection that is only for pre-training has nothing else: passages of it would be stored, and never read. Its
articles can be packed by several processes: gzip with a member for each batch of rows, which readers take as one file.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from isal import igzip
from pydantic import Field

from encore.config.datasets import CollectionFields, Split
from encore.errors import EncoreError
from encore.storage.files import GZIP_LEVEL, replacing, write_json, write_jsonl
from encore.storage.processes import shared_in_order

Row = dict[str, Any]


class ArticlesFields(CollectionFields):
    """Fields of kinds of collections that are only for pre-training."""

    splits: dict[str, Split] = Field({}, max_length=0, description="none: there are no queries")

    @property
    def only_articles(self) -> bool:
        """True: there are no queries."""
        return True


def write_articles(path: Path, articles: Iterable[Row]) -> dict[str, int]:
    """Write the articles, checking that their links point to sections, and count them; no file when there are none.

    Raises:
        EncoreError: an id occurs twice, or a link leads to an article or a section that does not exist.
    """
    path.unlink(missing_ok=True)
    rows = iter(articles)
    first = next(rows, None)
    if first is None:
        return {}
    checked = _Checked()
    write_jsonl(path, checked.passing(chain([first], rows)))
    return checked.totals()


def write_article_collection(
    folder: Path, articles: Iterable[Row], statistics: Mapping[str, Any], processes: int = 1
) -> dict[str, Any]:
    """Write a collection to pre-train on, articles alone, and return its counts (also in ``statistics.json``).

    The files of passages and queries are there and empty. ``statistics`` is read when all articles are written.

    Args:
        processes: that pack the articles; the bytes are the same for any number.

    Raises:
        EncoreError: there is no article, an id occurs twice, a link leads to nothing, or a text is no UTF-8.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, checked = folder / "articles.jsonl.gz", _Checked()
    try:
        _write_packed(path, checked.passing(articles), processes)
    except UnicodeEncodeError as error:
        raise EncoreError(f"an article holds half of a surrogate pair, which no UTF-8 can say: {error}") from error
    if not checked.counts["articles"]:
        path.unlink()
        raise EncoreError("the source holds no article; name another one")
    for name in ("corpus", "queries"):
        write_jsonl(folder / f"{name}.jsonl.gz", ())
    counts = {"passages": 0, "queries": 0, "splits": {}, **checked.totals(), **statistics}
    write_json(folder / "statistics.json", counts)
    return counts


class _Checked:
    """Counts the articles that pass and refuses wrong ones.

    A link may lead to an article that comes later: the furthest section that is asked of such a one is remembered.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._sections: dict[str, int] = {}
        self._awaited: dict[str, tuple[int, str]] = {}  # by article: the section, and who asks

    def totals(self) -> dict[str, int]:
        """What has passed, by name."""
        names = ("articles", "sections", "sentences", "links", "links_between_articles")
        return {name: self.counts[name] for name in names}

    def passing(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the articles unchanged, each once it has been checked and counted.

        Raises:
            EncoreError: an id occurs twice, or a link leads from or to a section that does not exist.
        """
        for row in rows:
            name, links = row["_id"], row["links"]
            if name in self._sections:
                raise EncoreError(f"articles: the id {name!r} occurs twice; give each article one row")
            self._sections[name] = len(row["sections"])
            anchor, source = self._awaited.pop(name, (-1, ""))
            if anchor >= self._sections[name]:
                raise _lost(source, name, anchor)
            for link in links:
                self._follow(name, link)
            self.counts["articles"] += 1
            self.counts["sections"] += len(row["sections"])
            self.counts["sentences"] += sum(len(section["sentences"]) for section in row["sections"])
            self.counts["links"] += len(links)
            self.counts["links_between_articles"] += sum(link["to"] != name for link in links)
            yield row
        for to, (anchor, source) in self._awaited.items():
            raise _lost(source, to, anchor)

    def _follow(self, source: str, link: Row) -> None:
        to, anchor = link["to"], link["anchor"]
        if anchor < 0 or anchor >= self._sections.get(to, anchor + 1):
            raise _lost(source, to, anchor)
        if not 0 <= link["section"] < self._sections[source]:
            raise _lost(source, source, link["section"])
        if to not in self._sections and anchor > self._awaited.get(to, (-1, ""))[0]:
            self._awaited[to] = anchor, source


def _lost(source: str, to: str, section: int) -> EncoreError:
    return EncoreError(
        f"article {source!r} has a link from or to a section that does not exist, {section} of {to!r}; remove it"
    )


TOGETHER = 256  # rows of a member


def _write_packed(path: Path, rows: Iterable[Row], processes: int) -> None:
    """Write one JSON object a line, compressed; equal rows give equal bytes, whatever the number of processes is."""
    rows = iter(rows)
    batches = iter(lambda: list(islice(rows, TOGETHER)), [])
    with replacing(path) as temporary, temporary.open("wb") as file:
        for packed in shared_in_order(_packed, batches, processes):
            file.write(packed)


def _packed(rows: list[dict[str, Any]]) -> bytes:
    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows]
    return igzip.compress("".join(lines).encode(), compresslevel=GZIP_LEVEL, mtime=0)

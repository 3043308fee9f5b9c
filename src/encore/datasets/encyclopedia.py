"""Articles that somebody has already read out of their pages: a JSON line each, with sections, paragraphs and links.

``{"id", "title", "sections": [{"heading", "paragraphs": [text]}], "links": [id]}``: the form of Wikispeedia's articles,
whose links are known by article and not by place.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field

from encore.config.datasets import MadeFrom
from encore.data.articles import ArticlesFields, Row, write_article_collection
from encore.data.sentences import split
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.source_files import content_of, refuse_changed
from encore.errors import EncoreError, quoted
from encore.storage.text_files import numbered_objects

_FORM = 'needs "id" and "title" as strings, "sections" with "heading" and "paragraphs", and "links"'


class EncyclopediaFields(ArticlesFields):
    """An entry of the catalogue with ``kind: encyclopedia``."""

    path: str = Field(description="a file of articles, .jsonl, .jsonl.gz or .jsonl.xz; from the repository's root")

    @property
    def made_from(self) -> MadeFrom:
        """The user's file."""
        return MadeFrom(path=self.path)

    def resolve(self) -> dict[str, Any]:
        """The content's identity: the file's digest; one that is not there yet counts by its name."""
        return {"kind": self.kind, "content": content_of(Path(self.path), "articles")}


def build_encyclopedia(spec: dict[str, Any], folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, a resolved ``EncyclopediaFields``, describes; returns its counts.

    Raises:
        EncoreError: the file is missing or not the planned one; or, with its line, a row is no JSON, no UTF-8 or no
            article, or repeats an id.
    """
    source = inputs.needed_source()
    if not source.is_file():
        raise EncoreError(f"{source} is missing; put the articles there, or name another `path`")
    refuse_changed(source, content_of(source, "articles"), spec["content"])
    titles = {row["id"]: row["title"] for _, row in _rows(source) if _has_text(row)}
    rows = sum(1 for _ in _rows(source))
    removed: Counter[str] = Counter()
    articles = (
        {
            "_id": row["id"],
            "title": row["title"],
            "sections": [{"title": heading, "sentences": sentences} for heading, sentences in sections],
            "links": list(_links(row, sections, titles, removed)),
        }
        for row, sections in _articles(source)
    )
    statistics = {"articles_without_text": rows - len(titles), "links_removed": removed}
    return write_article_collection(folder, articles, statistics)


def _links(
    row: Row, sections: list[tuple[str, list[str]]], titles: dict[str, str], removed: Counter[str]
) -> Iterator[Row]:
    """A link belongs to the first section that names the title it leads to; without such a section it is removed."""
    texts = [" ".join(sentences).lower() for _, sentences in sections]
    for to in dict.fromkeys(row["links"]):
        if to not in titles or to == row["id"]:
            removed["self" if to == row["id"] else "missing"] += 1
            continue
        says = re.compile(rf"(?<!\w){re.escape(titles[to].lower())}(?!\w)")
        place = next((number for number, text in enumerate(texts) if says.search(text)), None)
        if place is None:
            removed["unsaid"] += 1
        else:
            yield {"section": place, "to": to, "anchor": 0, "origin": "link"}


def _has_text(row: Row) -> bool:
    return any(text.strip() for section in row["sections"] for text in section["paragraphs"])


def _articles(source: Path) -> Iterator[tuple[Row, list[tuple[str, list[str]]]]]:
    """Each article that has text, with its sections that have some; the first, its lead, stays in any case."""
    for _, row in _rows(source):
        sections = [
            (section["heading"], [sentence for text in section["paragraphs"] for sentence in split(text)])
            for section in row["sections"]
        ]
        if _has_text(row):
            yield row, [each for number, each in enumerate(sections) if each[1] or number == 0]


def _rows(source: Path) -> Iterator[tuple[int, Row]]:
    seen: set[str] = set()
    for number, row in numbered_objects(source):
        if not _is_article(row):
            raise EncoreError(f"{source}, line {number}: {_FORM}; fix or remove the line")
        if row["id"] in seen:
            raise EncoreError(f"{source}, line {number}: id {quoted(row['id'])} occurs twice; remove one of the rows")
        seen.add(row["id"])
        yield number, row


def _is_article(row: Any) -> bool:
    return (
        isinstance(row, dict)
        and all(isinstance(row.get(key), str) for key in ("id", "title"))
        and all(isinstance(row.get(key), list) for key in ("sections", "links"))
        and all(isinstance(link, str) for link in row["links"])
        and all(_is_section(section) for section in row["sections"])
    )


def _is_section(section: Any) -> bool:
    return (
        isinstance(section, dict)
        and isinstance(section.get("heading"), str)
        and isinstance(section.get("paragraphs"), list)
        and all(isinstance(text, str) for text in section["paragraphs"])
    )


KIND = Kind(EncyclopediaFields, build_encyclopedia, impl=2)

"""Articles that somebody has already read out of their pages: a JSON line each, with sections, paragraphs and links.

``{"id", "title", "sections": [{"heading", "paragraphs": [text]}], "links": [id]}``: the form of Wikispeedia's articles,
whose links are known by article and not by place.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from encore.config.datasets import CollectionSpec, KnownSize
from encore.data.articles import ArticlesFields, Row, write_article_collection
from encore.data.sentences import split
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.source_files import content_of, estimated, refuse_changed
from encore.errors import EncoreError, quoted
from encore.storage.text_files import numbered_objects

_FORM = 'needs "id" and "title" as strings, "sections" with "heading" and "paragraphs", and "links"'


class EncyclopediaFields(ArticlesFields):
    """An entry of the catalogue with ``kind: encyclopedia``."""

    path: str = Field(description="a file of articles, .jsonl, .jsonl.gz or .jsonl.xz; from the repository's root")

    def resolve(self) -> dict[str, Any]:
        """The content's identity: the file's digest; one that is not there yet counts by its name."""
        return {"kind": self.kind, "content": content_of(Path(self.path), "articles")}

    def known_size(self) -> KnownSize:
        """Articles, sections with text and their mean words, estimated from the first part of a large file."""
        try:
            found = estimated(Path(self.path), _counted)
            return KnownSize(
                articles=found["articles"], sections=found["sections"], words=found["words"] / found["sections"]
            )
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError):
            return KnownSize()  # the collection's own job says what is wrong, with file and line


def _counted(row: Row) -> dict[str, int]:
    sizes = [sum(len(text.split()) for text in section["paragraphs"]) for section in row["sections"]]
    return {"articles": 1, "sections": sum(size > 0 for size in sizes), "words": sum(sizes)}


class _Section(BaseModel):
    heading: str
    paragraphs: list[str]


class _Article(BaseModel):
    id: str
    title: str
    sections: list[_Section]
    links: list[str]


def build_encyclopedia(spec: CollectionSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the collection that ``spec``, a resolved ``EncyclopediaFields``, describes; returns its counts."""
    source = inputs.needed_source()
    if not source.is_file():
        raise EncoreError(f"{source} is missing; put the articles there, or name another `path`")
    refuse_changed(source, content_of(source, "articles"), spec.content)
    rows, titles, removed = 0, dict[str, str](), Counter[str]()
    for row in _rows(source):
        rows += 1
        if any(text.strip() for section in row["sections"] for text in section["paragraphs"]):
            titles[row["id"]] = row["title"]
    articles = (_article(row, titles, removed, spec.language) for row in _rows(source) if row["id"] in titles)
    statistics = {"articles_without_text": rows - len(titles), "links_removed": removed}
    return write_article_collection(folder, articles, statistics)


def _article(row: Row, titles: dict[str, str], removed: Counter[str], language: str) -> Row:
    """An article with the sections that have text; the first, its lead, stays in any case."""
    sections = [
        {"title": each["heading"], "sentences": [s for text in each["paragraphs"] for s in split(text, language)]}
        for each in row["sections"]
    ]
    kept = [each for number, each in enumerate(sections) if each["sentences"] or number == 0]
    return {"_id": row["id"], "title": row["title"], "sections": kept, "links": [*_links(row, kept, titles, removed)]}


def _links(row: Row, sections: list[Row], titles: dict[str, str], removed: Counter[str]) -> Iterator[Row]:
    """A link belongs to the first section that names the title it leads to; without such a section it is removed."""
    texts = [" ".join(each["sentences"]).lower() for each in sections]
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


def _rows(source: Path) -> Iterator[Row]:
    seen: set[str] = set()
    for number, row in numbered_objects(source):
        try:
            _Article.model_validate(row)
        except ValidationError as error:
            raise EncoreError(f"{source}, line {number}: {_FORM}; fix or remove the line") from error
        if row["id"] in seen:
            raise EncoreError(f"{source}, line {number}: id {quoted(row['id'])} occurs twice; remove one of the rows")
        seen.add(row["id"])
        yield row


KIND = Kind(EncyclopediaFields, CollectionSpec, build_encyclopedia, impl=2)

"""The running text of a collection, whether or not it has articles."""

from __future__ import annotations

from collections.abc import Iterator

from encore.collections.common import Collection, Row
from encore.sentences import split


def articles(collection: Collection) -> Iterator[Row]:
    """A collection's articles; where it has none, each passage as an article of one section, split by rule."""
    if collection.has_articles():
        yield from collection.articles()
        return
    for row in collection.corpus():
        section = {"title": "", "sentences": split(row["text"])}
        yield {"_id": row["_id"], "title": row.get("title", ""), "sections": [section], "links": []}


def vocabulary_texts(collection: Collection) -> Iterator[str]:
    """What a vocabulary may be trained on: bodies and training queries, never the queries of another split."""
    for article in articles(collection):
        for section in article["sections"]:
            yield " ".join(section["sentences"])
    queries = collection.queries()
    if "train" in collection.splits():  # with several draws a query that trains in one is tested in another
        yield from (queries[name] for name in collection.qrels("train"))

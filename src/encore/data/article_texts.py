"""The running text of a collection, whether or not it has articles."""

from collections.abc import Iterable, Iterator

from encore.data.articles import article
from encore.data.collection import Collection, Row
from encore.data.sentences import split


def articles(collection: Collection) -> Iterator[Row]:
    """A collection's articles; if it has none, each passage as an article of one section, split by rule."""
    if collection.has_articles():
        yield from collection.articles()
        return
    language = collection.language
    for row in collection.corpus():
        yield article(row["_id"], row.get("title", ""), [("", split(row["text"], language))])


def titles(collection: Collection) -> Iterator[str]:
    """The titles of a collection's articles; if it has none, those of its passages."""
    rows = collection.articles() if collection.has_articles() else collection.corpus()
    return (row.get("title", "") for row in rows)


class VocabularyTexts(Iterable[str]):
    """What a vocabulary may be trained on: bodies and training queries, never the queries of another split.

    They are read from the files each time that they are gone through.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def __iter__(self) -> Iterator[str]:
        for row in articles(self._collection):
            for section in row["sections"]:
                yield " ".join(section["sentences"])
        queries = self._collection.queries()
        if "train" in self._collection.splits():  # with several draws a query that trains in one is tested in another
            yield from (queries[name] for name in self._collection.qrels("train"))

"""Passages of articles: sentences of one section, as many as fit."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from encore.data.collection import Collection

WORDS = 100  # of a passage at most


def passages_of(collection: Collection) -> Iterator[dict[str, Any]]:
    """A collection's passages; those that its articles are cut into where it has articles alone."""
    corpus = collection.corpus()
    if (first := next(corpus, None)) is not None:
        yield from chain([first], corpus)
        return
    for article in collection.articles():
        yield from passages(
            article["_id"], article["title"], [each["sentences"] for each in article["sections"]], WORDS
        )


def passages(page: str, title: str, sections: Iterable[list[str]], words: int) -> Iterator[dict[str, Any]]:
    """Rows of a corpus: an article's sections, given by their sentences, in passages of at most ``words`` words."""
    texts = (text for sentences in sections for text in packed(sentences, words))
    for number, text in enumerate(texts):
        yield {"_id": f"{page}-{number}", "title": title, "text": text}


def packed(sentences: list[str], words: int) -> Iterator[str]:
    """Sentences joined as long as they fit; one that is too long stands alone and whole."""
    taken: list[str] = []
    size = 0
    for sentence in sentences:
        length = len(sentence.split())
        if taken and size + length > words:
            yield " ".join(taken)
            taken, size = [], 0
        taken.append(sentence)
        size += length
    if taken:
        yield " ".join(taken)

"""Passages of articles, for a corpus: sentences of one section, as many as fit."""

from collections.abc import Iterable, Iterator
from typing import Any


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

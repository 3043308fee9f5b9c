"""What pairs are made of: sentences of sections as queries, packed passages with titles as documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from encore.objectives.parts.chunks import document_chunks, title_rooms

if TYPE_CHECKING:
    from encore.data.tokens import TokenStore


class PairDocument(NamedTuple):
    """The input of the document tower: ``title [SEP] passage``, or the passage alone.

    ``title`` is the number of pieces before the passage, the [SEP] included.
    """

    pieces: np.ndarray
    title: int


class Passages:
    """The sections of a collection's articles and the passages that they are packed into.

    Packing takes seconds on a large collection, so tasks that are trained together share these.
    """

    def __init__(self, store: TokenStore, length: int, titles: bool) -> None:
        self.store, self.titles = store, titles
        self.chunks = document_chunks(store, length, titles)
        self.article = np.repeat(np.arange(len(store.articles) - 1), np.diff(store.articles))  # of each section
        self.filled = np.isin(np.arange(len(self.article)), self.chunks.section)  # sections that have a chunk
        self._title_rooms = title_rooms(store, length)

    def sentence(self, section: int, rng: np.random.Generator) -> int:
        """The number of a sentence of a section, drawn from those with a piece."""
        sentences = self.chunks.filled(*self.store.sections[section : section + 2])
        return int(sentences[rng.integers(len(sentences))])

    def lengths(self, chunks: np.ndarray) -> np.ndarray:
        """Pieces of the documents of some chunks, [n]."""
        pieces = self.chunks.lengths_of(chunks)
        return pieces + self._title_rooms[self.article[self.chunks.section[chunks]]] if self.titles else pieces

    def document(self, chunk: int, removed: int | None = None) -> PairDocument:
        """A chunk with the title of its article, if there is one.

        Args:
            removed: the sentence of the chunk that the document lacks.
        """
        article = int(self.article[self.chunks.section[chunk]])
        passage = self.chunks[chunk] if removed is None else self.chunks.without(chunk, removed)
        room = int(self._title_rooms[article]) - 1
        if not self.titles or room < 0:
            return PairDocument(passage, 0)
        title = np.append(self.store.titles[article][:room], self.store.special.sep)
        return PairDocument(np.concatenate([title, passage]), len(title))

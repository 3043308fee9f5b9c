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
        self._full = np.asarray(store.sentences.lengths) > 0
        self._title_rooms = title_rooms(store, length)

    def query(self, section: int, rng: np.random.Generator) -> np.ndarray:
        """A sentence of a section, drawn from those with a piece."""
        sentences = np.arange(*self.store.sections[section : section + 2])
        return self.store.sentences[int(rng.choice(sentences[self._full[sentences]]))]

    def document(self, section: int, passage: np.ndarray) -> PairDocument:
        """A passage of a section with the title of its article, if there is one."""
        article = int(self.article[section])
        room = int(self._title_rooms[article]) - 1
        if not self.titles or room < 0:
            return PairDocument(passage, 0)
        title = np.append(self.store.titles[article][:room], self.store.special.sep)
        return PairDocument(np.concatenate([title, passage]), len(title))

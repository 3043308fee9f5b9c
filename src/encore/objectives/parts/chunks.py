"""Texts of a given length: consecutive sentences of a section, packed one after another until the next does not fit."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from encore.errors import EncoreError

if TYPE_CHECKING:
    from encore.data.tokens import Sequences, TokenStore

PIECES = 2**23  # of a block of texts, which takes about 1 GB while its words are counted
SECTIONS = 2**16  # that are packed at once


class Chunks:
    """The chunks of a collection, in its order; ``chunks[i]`` gives pieces without special tokens.

    A chunk never crosses a section. A sentence that alone is too long makes a chunk of its own, cut at its end.
    """

    def __init__(self, sentences: Sequences, sections: np.ndarray, rooms: np.ndarray) -> None:
        """Pack.

        Args:
            sections: [sections + 1] offsets into ``sentences``.
            rooms: [sections] pieces that a chunk of the section may have.
        """
        self.sentences = sentences
        self.rooms = rooms
        self.bounds, self.section = _pack(np.asarray(sentences.lengths), sections, rooms)
        self._first_of_section = np.searchsorted(self.section, np.arange(len(sections)))

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, chunk: int) -> np.ndarray:
        return np.concatenate(self.parts(chunk))[: self.rooms[self.section[chunk]]]

    def parts(self, chunk: int) -> list[np.ndarray]:
        """The sentences of a chunk, those without a piece left out."""
        first, last = self.bounds[chunk]
        return [part for sentence in range(first, last) if len(part := self.sentences[sentence])]

    @property
    def sizes(self) -> np.ndarray:
        """Sentences in each chunk, those without a piece left out, [n]."""
        return self._between(np.asarray(self.sentences.lengths) > 0)

    @property
    def lengths(self) -> np.ndarray:
        """Pieces in each chunk, [n]."""
        return np.minimum(self._between(self.sentences.lengths), self.rooms[self.section])

    def of_section(self, section: int) -> range:
        """The chunks of a section; a section without text has none."""
        return range(*self._first_of_section[section : section + 2])

    def _between(self, counts: np.ndarray) -> np.ndarray:
        """Sum of a count over the sentences of each chunk."""
        return np.diff(np.concatenate([[0], np.cumsum(counts)])[self.bounds])[:, 0]


class ChunkBlock(NamedTuple):
    """Texts that are held at once."""

    number: int
    first: int  # of its texts, among all
    texts: list[np.ndarray]


class Blocks:
    """The texts of a collection in blocks of about as many pieces, in order; they are read as often as asked for."""

    def __init__(self, chunks: Chunks, usable: np.ndarray) -> None:
        self._chunks, self._usable = chunks, usable
        ends = np.cumsum(chunks.lengths[usable])
        self._bounds = np.unique([0, *np.searchsorted(ends, np.arange(PIECES, ends[-1], PIECES)), len(usable)])

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __getitem__(self, number: int) -> ChunkBlock:
        first, end = (int(bound) for bound in self._bounds[range(len(self))[number] :][:2])
        return ChunkBlock(number, first, [self._chunks[chunk] for chunk in self._usable[first:end].tolist()])

    def __iter__(self) -> Iterator[ChunkBlock]:
        return (self[number] for number in range(len(self)))


def text_chunks(store: TokenStore, length: int, min_tokens: int = 1) -> tuple[Chunks, np.ndarray]:
    """Chunks for objectives on single texts, and which of them have at least ``min_tokens`` pieces.

    A collection without articles gives its passages instead, each one a chunk.

    Raises:
        EncoreError: no text is long enough.
    """
    source, sections = store.sentences, store.sections
    if len(source) == 0:
        source, sections = store.passages, np.arange(len(store.passages) + 1)
    chunks = Chunks(source, sections, np.full(len(sections) - 1, length - 2))
    usable = np.flatnonzero(chunks.lengths >= min_tokens)
    if len(usable) == 0:
        raise EncoreError(
            f"the collection has no text of {min_tokens} or more pieces; lower `min_tokens` or take other texts"
        )
    return chunks, usable


def document_chunks(store: TokenStore, length: int, titles: bool) -> Chunks:
    """Chunks for the document tower: with titles, each leaves room for its article's title and a [SEP]."""
    rooms = np.full(len(store.sections) - 1, length - 2)
    if titles:
        rooms -= np.repeat(title_rooms(store, length), np.diff(store.articles))
    return Chunks(store.sentences, store.sections, rooms)


def title_rooms(store: TokenStore, length: int) -> np.ndarray:
    """Pieces that a title and its [SEP] take in a text of each article, [articles]: at most a quarter of the length."""
    lengths = np.asarray(store.titles.lengths, dtype=np.int64)
    return np.where(lengths > 0, np.minimum(lengths + 1, max(length // 4, 2)), 0)


def _pack(lengths: np.ndarray, sections: np.ndarray, rooms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds [n, 2] in sentences and section [n] of each chunk; sections without text have none."""
    bounds, owners = array("q"), array("q")
    for part in range(0, len(sections) - 1, SECTIONS):
        ends = sections[part : part + SECTIONS + 1].tolist()
        for section, (first, last) in enumerate(pairwise(ends), part):
            for start, end in _pack_section(lengths[first:last].tolist(), int(rooms[section])):
                bounds.extend((first + start, first + end))
                owners.append(section)
    return np.array(bounds).reshape(-1, 2), np.array(owners)


def _pack_section(sizes: list[int], room: int) -> list[tuple[int, int]]:
    """Greedy: a chunk ends before the first sentence that does not fit; chunks without a piece are left out."""
    found, start, used = [], 0, 0
    for sentence, size in enumerate(sizes):
        if used and used + size > room:
            found.append((start, sentence))
            start, used = sentence, 0
        used += size
    if used:
        found.append((start, len(sizes)))
    return found

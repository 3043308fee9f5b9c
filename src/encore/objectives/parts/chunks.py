"""Texts of a given length: consecutive sentences of an article or a section, packed one after another."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from encore.config.entries import PretrainStep
from encore.config.validation import Positive, Share, Strict
from encore.errors import EncoreError
from encore.models import flops
from encore.objectives.base import Arrays, Objective

if TYPE_CHECKING:
    from torch import Tensor

    from encore.data.tokens import Sequences, TokenStore
    from encore.models.encoder import Encoder

PIECES = 2**23  # of a block of texts, which takes about 1 GB while its words are counted
SECTIONS = 2**16  # that are packed at once
SHORTEST = 2  # pieces of a text that is packed to a shorter length


class PackingFields(Strict):
    """Fields of the packing of single texts from articles."""

    packing: Literal["article", "section", "overfull"] = Field(
        "article",
        description="What a text is packed from: the sentences of an article, whatever their section, or of a section. "
        "A text ends before the sentence that does not fit. With `overfull` it is of an article, ends behind that "
        "sentence, and is cut at a random place each time that it is read.",
    )
    short_texts: Share = Field(
        0.0, description="The share of texts that are packed to a random shorter length, in place of `length`."
    )
    min_tokens: Positive = Field(1, description="The fewest word pieces of a text that is used.")


class Chunks:
    """The chunks of a collection, in its order; ``chunks[i]`` gives pieces without special tokens.

    A chunk never crosses a section and ends before the first sentence that does not fit. A sentence that alone is too
    long is a chunk by itself, cut at its end. An overfull chunk ends behind the sentence that does not fit, as the BoW
    paper's released code packs.
    """

    def __init__(
        self, sentences: Sequences, sections: np.ndarray, rooms: np.ndarray, short: float = 0.0, overfull: bool = False
    ) -> None:
        """Pack.

        Args:
            sections: [sections + 1] offsets into ``sentences``, of sections or of what else no chunk crosses.
            rooms: [sections] pieces that a chunk of the section may have.
            short: the share of chunks whose room is a random part of it, the same for every training.
        """
        self.sentences = sentences
        self.rooms, self.overfull = rooms, overfull
        self.bounds, self.section = _bounds(sentences.lengths, sections, rooms, _targets(short), overfull)
        self._first_of_section = np.searchsorted(self.section, np.arange(len(sections)))

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, chunk: int) -> np.ndarray:
        return np.concatenate(self.parts(chunk))[: self.rooms[self.section[chunk]]]

    def read(self, chunk: int, rng: np.random.Generator) -> np.ndarray:
        """The pieces of a chunk for an example; of an overfull one a random part is cut off, drawn each time."""
        pieces, room = np.concatenate(self.parts(chunk)), self.rooms[self.section[chunk]]
        start = int(rng.integers(len(pieces) - room + 1)) if self.overfull and len(pieces) > room else 0
        return pieces[start : start + room]

    def filled(self, first: int, last: int) -> np.ndarray:
        """The numbers of those sentences from ``first`` to before ``last`` that have a piece."""
        return first + np.flatnonzero(np.diff(self.sentences.offsets[first : last + 1]))

    def without(self, chunk: int, removed: int) -> np.ndarray:
        """The pieces of a chunk without those of one of its sentences."""
        return np.concatenate(
            [self.sentences[sentence] for sentence in range(*self.bounds[chunk]) if sentence != removed]
        )

    def parts(self, chunk: int) -> list[np.ndarray]:
        """The sentences of a chunk, those without a piece left out."""
        first, last = self.bounds[chunk]
        return [part for sentence in range(first, last) if len(part := self.sentences[sentence])]

    @property
    def sizes(self) -> np.ndarray:
        """Sentences in each chunk, those without a piece left out, [n]."""
        spoken = np.concatenate([[0], np.cumsum(np.diff(self.sentences.offsets) > 0)])
        return np.diff(spoken[self.bounds])[:, 0]

    @property
    def lengths(self) -> np.ndarray:
        """Pieces in each chunk, [n]."""
        return self.lengths_of(slice(None))

    def lengths_of(self, chunks: np.ndarray | slice) -> np.ndarray:
        """Pieces in some chunks, [n]."""
        pieces = np.diff(self.sentences.offsets[self.bounds[chunks]])[:, 0]
        return np.minimum(pieces, self.rooms[self.section[chunks]])

    def of_section(self, section: int) -> range:
        """The chunks of a section; a section without text has none."""
        return range(*self._first_of_section[section : section + 2])


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


def text_chunks(store: TokenStore, length: int, fields: PackingFields) -> tuple[Chunks, np.ndarray]:
    """Chunks for objectives on single texts, and which of them have at least ``min_tokens`` pieces.

    A collection without articles gives its passages instead, each one a chunk.
    """
    source, bounds = store.sentences, store.sections
    if len(source) == 0:
        source, bounds = store.passages, np.arange(len(store.passages) + 1)
    elif fields.packing != "section":
        bounds = store.sections[store.articles]
    rooms = np.full(len(bounds) - 1, length - 2)
    chunks = Chunks(source, bounds, rooms, fields.short_texts, overfull=fields.packing == "overfull")
    usable = np.flatnonzero(chunks.lengths >= fields.min_tokens)
    if len(usable) == 0:
        raise EncoreError(
            f"the collection has no text of {fields.min_tokens} or more pieces; lower `min_tokens` or take other texts"
        )
    return chunks, usable


class TextFields(PackingFields, PretrainStep):
    """Fields of every objective on single texts."""


F = TypeVar("F", bound=TextFields)


class Texts(Objective[F]):
    """Base of the objectives on single texts: the chunks of the collection that are long enough."""

    def __init__(self, fields: F, store: TokenStore, prepared: Path | None = None) -> None:
        super().__init__(fields, store, prepared)
        self.chunks, self.usable = text_chunks(store, fields.length, fields)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Word pieces of each usable text, [len(self)]."""
        return self.chunks.lengths[self.usable]

    def __len__(self) -> int:
        return len(self.usable)

    def counts(self) -> dict[str, float]:
        """The number of texts, and their mean length in word pieces."""
        return {"texts": len(self), "pieces_per_text": round(float(self.lengths.mean()), 1)}

    def sizes(self, indices: np.ndarray, chance: Callable[[int], np.random.Generator]) -> np.ndarray:
        """Word pieces of each text."""
        return self.lengths[indices]

    def states(self, run: Callable[..., Tensor], batch: dict[str, Tensor]) -> Tensor:
        """The states [B, L, H] that ``run``, an encoder, gives a batch; contrasted texts are of unlike length."""
        from encore.models.packing import in_parts

        return in_parts(run, batch["ids"], batch["mask"]) if self.has_contrast else run(batch["ids"], batch["mask"])

    def encoded(self, encoder: Encoder, batch: Arrays) -> float:
        """The operations of ``states``, forward."""
        mask = batch.get("mask") if self.has_contrast else None
        return flops.forward_in_parts(encoder.config, batch["ids"], mask)


def _packed(sizes: list[int], room: int, target: Callable[[int], int], overfull: bool) -> Iterator[tuple[int, int]]:
    """Greedy: a chunk ends before the first sentence that does not fit, or behind it; none is without a piece."""
    start, used, most = 0, 0, target(room)
    for sentence, size in enumerate(sizes):
        if used + size > most and (used or overfull):
            yield start, sentence + overfull
            start, used, most = sentence + overfull, 0, target(room)
            size = 0 if overfull else size
        used += size
    if used:
        yield start, len(sizes)


def _targets(short: float) -> Callable[[int], int]:
    """The pieces that the next text is packed to, of those that it has room for."""
    if not short:
        return lambda room: room
    rng = random.Random(0)
    return lambda room: rng.randint(min(SHORTEST, room), room) if rng.random() < short else room


def _bounds(
    lengths: np.ndarray, sections: np.ndarray, rooms: np.ndarray, target: Callable[[int], int], overfull: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds [n, 2] in sentences and section [n] of each chunk; sections without text have none."""
    bounds, owners = array("q"), array("q")
    for part in range(0, len(sections) - 1, SECTIONS):
        ends = sections[part : part + SECTIONS + 1].tolist()
        for section, (first, last) in enumerate(pairwise(ends), part):
            for start, end in _packed(lengths[first:last].tolist(), int(rooms[section]), target, overfull):
                bounds.extend((first + start, first + end))
                owners.append(section)
    return np.array(bounds).reshape(-1, 2), np.array(owners)

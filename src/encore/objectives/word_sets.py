"""Pairs of word sets drawn from each document, of which one represents it better (PROP and B-PROP, section 3).

Each is a preparation: computed from a collection once, read by every training with the same fields.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from pydantic import Field

from encore.config import Positive, Share, Strict
from encore.errors import EncoreError
from encore.objectives.base import Preparation
from encore.objectives.chunks import text_chunks
from encore.objectives.lexicon import Lexicon
from encore.storage import write_array
from encore.training.randomness import generator

if TYPE_CHECKING:
    from encore.tokens import TokenStore


class SetFields(Strict):
    """Fields of both preparations, and of the objectives that read them."""

    set_seed: int = Field(0, ge=0, description="of the word sets, which all seeds of a training share")
    set_size: float = Field(3.0, gt=0, description="words in a set: Poisson distributed, drawn again if 0")
    stored_pairs: Positive = Field(10, description="pairs of sets drawn for each document")
    skip_below: int = Field(100, ge=0, description="pieces below which a document is skipped")
    skip_share: Share = Field(0.8, description="of the documents below that, which share is skipped")


class Distribution(Protocol):
    """What words of a document are drawn from."""

    def draw(self, document: int, sizes: np.ndarray, rng: np.random.Generator) -> Drawn | None:
        """Sets of these sizes [S]; None where the document has too few words."""


class WordSets(Preparation, SetFields):
    """Base of the preparations: a subclass says from what distribution words are drawn."""

    length: Positive
    shortest: Positive = 1

    @abstractmethod
    def distribution(
        self, store: TokenStore, texts: list[np.ndarray], words: Lexicon, weights: Path | None
    ) -> Distribution:
        """The distribution of each text's words."""

    def write(self, store: TokenStore, weights: Path | None, output: Path) -> dict[str, Any]:
        """Draw the pairs of every document; see ``PreparedPairs`` for the files.

        Raises:
            EncoreError: no document is long enough and has words enough.
        """
        chunks, usable = text_chunks(store, self.length, self.shortest)
        texts = [chunks[chunk] for chunk in usable]
        words = Lexicon(texts, store.pieces, store.continues)
        distribution = self.distribution(store, texts, words, weights)
        documents, drawn = [], []
        for text, chunk in enumerate(usable.tolist()):
            if pairs := self._pairs(distribution, text, len(texts[text])):
                documents.append(chunk)
                drawn.append(pairs)
        if not documents:
            raise EncoreError(
                f"no text of the collection gives word sets for {self.name}; lower `skip_below` or `skip_share`, "
                "or what a text's words must be"
            )
        _save(output, documents, drawn, words)
        return {"documents": len(documents), "texts": len(texts), "words": len(words)}

    def _pairs(self, distribution: Distribution, text: int, pieces: int) -> Drawn | None:
        rng = generator(self.set_seed, "word sets", text)
        if rng.random() < self.skip_share and pieces < self.skip_below:
            return None
        sizes = np.repeat(set_sizes(self.set_size, self.stored_pairs, rng), 2)
        drawn = distribution.draw(text, sizes, rng)
        return drawn.better_first() if drawn else None


class Drawn(NamedTuple):
    """The sets of a document: words one set after another, a score for each, and the sets' sizes [2 * pairs]."""

    words: np.ndarray
    scores: np.ndarray
    sizes: np.ndarray

    @property
    def totals(self) -> np.ndarray:
        """The score of each set: the sum over its words."""
        return np.add.reduceat(self.scores, np.cumsum(self.sizes) - self.sizes)

    def better_first(self) -> Drawn:
        """The same with the higher score first in each pair; equal scores stay as they were drawn."""
        first, second = self.totals.reshape(-1, 2).T
        rank = np.arange(len(self.sizes)).reshape(-1, 2)
        rank[second > first] = rank[second > first, ::-1]
        place = np.argsort(np.repeat(rank.ravel(), self.sizes), kind="stable")  # a pair's sets have the same size
        return Drawn(self.words[place], self.scores[place], self.sizes)


def set_sizes(mean: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Sizes of ``count`` pairs of sets: Poisson with this mean, drawn again while 0."""
    sizes = rng.poisson(mean, size=count)
    while (empty := sizes == 0).any():
        sizes[empty] = rng.poisson(mean, size=int(empty.sum()))
    return sizes


class PreparedPairs:
    """The pairs of a prepared folder.

    Files: ``documents.npy`` [D], numbers of the chunks that have pairs; ``pieces.npy`` uint16, the pieces of all sets
    in turn; ``offsets.npy`` [2 * D * P + 1], where each set begins; ``scores.npy`` [D, P, 2], the higher first.
    """

    def __init__(self, folder: Path) -> None:
        self.documents, self.scores = (np.load(folder / f"{name}.npy") for name in ("documents", "scores"))
        self._pieces, self._offsets = (np.load(folder / f"{name}.npy") for name in ("pieces", "offsets"))

    def pair(self, document: int, pair: int) -> list[np.ndarray]:
        """The pieces of the better and of the worse set."""
        first = 2 * (document * self.scores.shape[1] + pair)
        return [self._pieces[self._offsets[place] : self._offsets[place + 1]] for place in (first, first + 1)]


def _save(output: Path, documents: list[int], drawn: list[Drawn], words: Lexicon) -> None:
    pieces, lengths = words.pieces(np.concatenate([sets.words for sets in drawn]))
    sizes = np.concatenate([sets.sizes for sets in drawn])
    ends = np.concatenate([[0], np.cumsum(lengths)])[np.concatenate([[0], np.cumsum(sizes)])]
    scores = np.stack([sets.totals.reshape(-1, 2) for sets in drawn])
    arrays = {"documents": np.array(documents), "pieces": pieces.astype("<u2"), "offsets": ends, "scores": scores}
    for name, array in arrays.items():
        write_array(output / f"{name}.npy", array)

"""Pairs of word sets drawn from each document, of which one represents it better (PROP and B-PROP, section 3).

Each is a preparation: computed from a collection once, read by every training with the same fields.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
from pydantic import Field

from encore.config.strict import Positive, Share, Strict
from encore.errors import EncoreError
from encore.objectives.base import Preparation
from encore.objectives.parts.attention import Attention, attended
from encore.objectives.parts.chunks import Blocks, ChunkBlock, PackingFields, text_chunks
from encore.objectives.parts.lexicon import Lexicon, Occurrences
from encore.storage.files import appending
from encore.training import launch
from encore.training.randomness import generator

if TYPE_CHECKING:
    from encore.data.tokens import TokenStore


class SetFields(Strict):
    """Fields of both preparations, and of the objectives that read them."""

    set_seed: int = Field(0, ge=0, description="The seed of the word sets, which trainings of all seeds share.")
    set_size: float = Field(
        3.0, gt=0, description="The mean number of words in a set, Poisson distributed and never 0."
    )
    stored_pairs: Positive = Field(10, description="The number of pairs of sets prepared for each document.")
    skip_below: int = Field(
        100, ge=0, description="The number of word pieces below which documents are skipped, by `skip_share`."
    )
    skip_share: Share = Field(0.8, description="The share of the documents below `skip_below` that are skipped.")


class Distribution(Protocol):
    """What words of the documents of a block are drawn from."""

    def draw(self, document: int, sizes: np.ndarray, rng: np.random.Generator) -> Drawn | None:
        """Sets of these sizes [S] for a document of the block; None where it has too few words."""


class Statistics(Protocol):
    """What a preparation knows of a collection: taken up block by block, then asked of each block again."""

    def enter(self, block: ChunkBlock, found: Occurrences) -> None:
        """Take up a block, in which words are still nodes."""

    def close(self, words: Lexicon) -> None:
        """All blocks are in, and words have numbers."""

    def distribution(self, block: ChunkBlock, found: Occurrences) -> Distribution:
        """The distribution of each of its texts' words."""


class WordSets(Preparation, PackingFields, SetFields):
    """Base of the preparations: a subclass says from what distribution words are drawn."""

    length: Positive

    @abstractmethod
    def statistics(self, attention: Attention | None) -> Statistics:
        """What is to be known of the collection; with the parent model's attention where it is read."""

    def write(self, store: TokenStore, weights: Path | None, output: Path, state: Path | None = None) -> dict[str, Any]:
        """Draw the pairs of every document; see ``PreparedPairs`` for the files.

        Of several processes all read texts with the parent model, and the first alone does the rest.

        Raises:
            EncoreError: no document is long enough and has words enough.
        """
        chunks, usable = text_chunks(store, self.length, self)
        blocks = Blocks(chunks, usable)
        if not self.reads_weights:
            return self._write(store, blocks, usable, self.statistics(None), output)
        with attended(weights, blocks, self.length, state) as attention:
            return self._write(store, blocks, usable, self.statistics(attention), output) if launch.leads() else {}

    def _write(
        self, store: TokenStore, blocks: Blocks, usable: np.ndarray, known: Statistics, output: Path
    ) -> dict[str, Any]:
        words = Lexicon(store.pieces, store.continues)
        for block in blocks:
            known.enter(block, words.enter(block.texts))
            print(f"block {block.number + 1} of {len(blocks)}: its words are counted", flush=True)
        words.close()
        known.close(words)
        with Pairs(output, words, self.stored_pairs) as written:
            for block in blocks:
                distribution = known.distribution(block, words.find(block.texts))
                drawn = ((text, self._pairs(distribution, text, block)) for text in range(len(block.texts)))
                found = {int(usable[block.first + text]): pairs for text, pairs in drawn if pairs}
                written.append(found)
                print(f"block {block.number + 1} of {len(blocks)}: sets are drawn", flush=True)
        if not written.documents:
            raise EncoreError(
                f"no text of the collection gives word sets for {self.name}; lower `skip_below` or `skip_share`, "
                "or what a text's words must be"
            )
        return {"documents": written.documents, "texts": len(usable), "words": len(words)}

    def _pairs(self, distribution: Distribution, text: int, block: ChunkBlock) -> Drawn | None:
        rng = generator(self.set_seed, "word sets", block.first + text)
        if rng.random() < self.skip_share and len(block.texts[text]) < self.skip_below:
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
        """Open the files, of which ``documents`` alone is read."""
        self.documents = np.load(folder / "documents.npy")
        files = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("scores", "pieces", "offsets"))
        self.scores, self._pieces, self._offsets = (file.view(np.ndarray) for file in files)

    def pair(self, document: int, pair: int) -> list[np.ndarray]:
        """The pieces of the better and of the worse set."""
        first = 2 * (document * self.scores.shape[1] + pair)
        return [self._pieces[self._offsets[place] : self._offsets[place + 1]] for place in (first, first + 1)]


class Pairs:
    """Writes a prepared folder's files, block by block."""

    def __init__(self, output: Path, words: Lexicon, pairs: int) -> None:
        self.documents = 0
        self._output, self._words, self._pairs = output, words, pairs
        self._end = 0
        self._files = ExitStack()

    def __enter__(self) -> Self:
        kinds: dict[str, tuple[str, tuple[int, ...]]] = {"documents": ("<i8", ()), "pieces": ("<u2", ())}
        kinds |= {"offsets": ("<i8", ()), "scores": ("<f8", (self._pairs, 2))}
        self._append = {
            name: self._files.enter_context(appending(self._output / f"{name}.npy", kind, shape))
            for name, (kind, shape) in kinds.items()
        }
        self._append["offsets"](np.zeros(1, dtype=np.int64))
        return self

    def __exit__(self, *error: Any) -> None:
        self._files.__exit__(*error)

    def append(self, found: dict[int, Drawn]) -> None:
        """Write the pairs of documents, by their chunks."""
        if not found:
            return
        drawn = list(found.values())
        pieces, lengths = self._words.pieces(np.concatenate([sets.words for sets in drawn]))
        sizes = np.concatenate([sets.sizes for sets in drawn])
        ends = self._end + np.concatenate([[0], np.cumsum(lengths)])[np.cumsum(sizes)]
        self._append["documents"](np.fromiter(found, dtype=np.int64))
        self._append["pieces"](pieces)
        self._append["offsets"](ends)
        self._append["scores"](np.stack([sets.totals.reshape(-1, 2) for sets in drawn]))
        self.documents, self._end = self.documents + len(found), int(ends[-1])

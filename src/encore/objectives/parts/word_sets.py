"""Pairs of word sets drawn from each document, of which one represents it better (PROP and B-PROP, section 3).

Each is a preparation: computed from a collection once, read by every training with the same fields.
"""

from abc import abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from pydantic import Field

from encore.config.validation import Positive, Share, Strict
from encore.data.tokens import TokenStore, id_type
from encore.errors import EncoreError
from encore.objectives.base import Preparation
from encore.objectives.parts.chunks import Blocks, ChunkBlock, PackingFields, text_chunks
from encore.objectives.parts.lexicon import Lexicon, Occurrences, Sums
from encore.storage.files import appending
from encore.storage.processes import shared_in_order
from encore.training.randomness import generator

AHEAD = 2  # blocks handed out for each process, each of some ten million numbers


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
    """The distribution that words of a block's documents are drawn from."""

    def draw(self, document: int, sizes: np.ndarray, rng: np.random.Generator) -> "Drawn | None":
        """Sets of these sizes [S] for a document of the block; None where it has too few words."""


class Statistics(Protocol):
    """Statistics of a collection: added up block by block, then used for each block."""

    def counted(self, block: ChunkBlock, found: Occurrences) -> Sums:
        """The statistics of a block for each text and word; words are nodes of the block's lexicon; by any process."""

    def add(self, sums: Sums) -> None:
        """Add what a block adds, where words are nodes of the collection's lexicon; blocks come in their order."""

    def close(self, words: Lexicon) -> None:
        """All blocks are in, and words have numbers."""

    def distribution(self, block: ChunkBlock, found: Occurrences) -> Distribution:
        """The distribution of each of its texts' words; by any process."""


class WordSets(Preparation, PackingFields, SetFields):
    """Base of the preparations: a subclass says from what distribution words are drawn."""

    length: Positive

    @abstractmethod
    def statistics(self, attention: Path | None) -> Statistics:
        """Empty statistics; with the folder of the model's attention, if it is read."""

    def write(
        self, store: TokenStore, output: Path, attention: Path | None = None, processes: int = 1
    ) -> dict[str, Any]:
        """Draw the pairs of every document; see ``PreparedPairs`` for the files."""
        chunks, usable = text_chunks(store, self.length, self)
        blocks, known = Blocks(chunks, usable), self.statistics(attention)
        processes = min(processes, len(blocks))
        words = self._counted(store, blocks, known, processes)

        def drawn(number: int) -> "BlockPairs | None":
            block = blocks[number]
            distribution = known.distribution(block, words.find(block.texts))
            found = ((text, self._pairs(distribution, text, block)) for text in range(len(block.texts)))
            return BlockPairs.of({int(usable[block.first + text]): pairs for text, pairs in found if pairs}, words)

        kinds: dict[str, tuple[str, tuple[int, ...]]] = {"documents": ("<i8", ()), "offsets": ("<i8", ())}
        kinds |= {"pieces": (id_type(store.vocabulary).str, ()), "scores": ("<f8", (self.stored_pairs, 2))}
        documents = end = 0
        with ExitStack() as files:
            append = {name: files.enter_context(appending(output / f"{name}.npy", *kinds[name])) for name in kinds}
            append["offsets"](np.zeros(1, dtype=np.int64))
            for number, pairs in enumerate(shared_in_order(drawn, range(len(blocks)), processes, AHEAD)):
                if pairs:
                    for name, values in pairs._replace(offsets=end + pairs.offsets)._asdict().items():
                        append[name](values)
                    documents, end = documents + len(pairs.documents), end + int(pairs.offsets[-1])
                print(f"block {number + 1} of {len(blocks)}: sets are drawn", flush=True)
        if not documents:
            raise EncoreError(
                f"no text of the collection gives word sets for {self.name}; lower `skip_below` or `skip_share`, "
                "or what a text's words must be"
            )
        return {"documents": documents, "texts": len(usable), "words": len(words)}

    def _counted(self, store: TokenStore, blocks: Blocks, known: Statistics, processes: int) -> Lexicon:
        """All words, and ``known`` of all blocks."""

        def counted(number: int) -> tuple[Lexicon, Sums]:
            own, block = Lexicon(store.pieces, store.continues), blocks[number]
            return own, known.counted(block, own.enter(block.texts))

        words = Lexicon(store.pieces, store.continues)
        for number, (own, sums) in enumerate(shared_in_order(counted, range(len(blocks)), processes, AHEAD)):
            known.add(sums._replace(words=words.join(own)[sums.words]))
            print(f"block {number + 1} of {len(blocks)}: its words are counted", flush=True)
        words.close()
        known.close(words)
        return words

    def _pairs(self, distribution: Distribution, text: int, block: ChunkBlock) -> "Drawn | None":
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

    def better_first(self) -> "Drawn":
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

    Files: ``documents.npy`` [D], numbers of the chunks that have pairs; ``pieces.npy``, the pieces of all sets in turn;
    ``offsets.npy`` [2 * D * P + 1], where each set begins; ``scores.npy`` [D, P, 2], the higher first.
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


class BlockPairs(NamedTuple):
    """The pairs of a block's documents, as ``PreparedPairs`` has them; ``offsets`` [2 * D * P]: where each set ends."""

    documents: np.ndarray
    pieces: np.ndarray
    offsets: np.ndarray
    scores: np.ndarray

    @classmethod
    def of(cls, found: dict[int, Drawn], words: Lexicon) -> "BlockPairs | None":
        """The pairs of documents, by their chunks; None where there are none."""
        if not found:
            return None
        drawn = list(found.values())
        pieces, lengths = words.pieces(np.concatenate([sets.words for sets in drawn]))
        last = np.cumsum(np.concatenate([sets.sizes for sets in drawn])) - 1  # word of each set
        scores = np.stack([sets.totals.reshape(-1, 2) for sets in drawn])
        return cls(np.fromiter(found, dtype=np.int64), pieces, np.cumsum(lengths)[last], scores)

"""The words of a collection's texts: groups of pieces, each distinct word with a number of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from encore.objectives.stop_words import content_pieces
from encore.vocabulary import CONTINUES


class Occurrences(NamedTuple):
    """Words as they come in texts, [n] each: which text, the place of the first piece in it, which word."""

    text: np.ndarray
    place: np.ndarray
    word: np.ndarray


class Lexicon:
    """The distinct words of texts, in the order of their pieces' numbers."""

    def __init__(self, texts: list[np.ndarray], pieces: list[str], continues: np.ndarray) -> None:
        """Find the words.

        Args:
            texts: pieces of each text, without special tokens.
            pieces: the vocabulary.
            continues: [vocabulary] bool, whether a piece continues the word before it.
        """
        self._pieces = pieces
        self._flat = np.concatenate([np.zeros(0, dtype=np.int64), *texts])
        ends = np.cumsum([0, *map(len, texts)])
        begins = ~continues[self._flat]
        begins[ends[:-1][np.diff(ends) > 0]] = True
        starts = np.flatnonzero(begins)
        lengths = np.diff(np.append(starts, len(self._flat)))
        nodes = _nodes(self._flat, starts, lengths, len(pieces))
        _, first, word = np.unique(nodes, return_index=True, return_inverse=True)
        self._starts, self.lengths = starts[first], lengths[first]
        self.whole = ~continues[self._flat[self._starts]]  # [words], false for those that a text begins within
        text = np.searchsorted(ends, starts, side="right") - 1
        self.occurrences = Occurrences(text, starts - ends[text], word)

    def __len__(self) -> int:
        return len(self._starts)

    def pieces(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The pieces of words, one after another, and how many each word has."""
        lengths = self.lengths[words]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return self._flat[np.repeat(self._starts[words], lengths) + within], lengths

    def spelled(self, word: int) -> str:
        """A word as it is written."""
        ids = self._flat[self._starts[word] : self._starts[word] + self.lengths[word]]
        return "".join(self._pieces[piece].removeprefix(CONTINUES) for piece in ids)

    def content(self) -> np.ndarray:
        """Which words are content: of several pieces, or no stop-words and no punctuation; [words] bool."""
        alone = content_pieces(self._pieces)[self._flat[self._starts]]
        content: np.ndarray = self.whole & ((self.lengths > 1) | alone)
        return content

    def alphabetic(self) -> np.ndarray:
        """Which words have letters only, [words] bool."""
        return self.whole & np.array([self.spelled(word).isalpha() for word in range(len(self))], dtype=bool)


class Sums(NamedTuple):
    """What each text's distinct words amount to: text t has ``words[bounds[t]:bounds[t + 1]]`` with these values."""

    bounds: np.ndarray
    words: np.ndarray
    values: np.ndarray

    def of(self, text: int) -> tuple[np.ndarray, np.ndarray]:
        """Words and values of a text."""
        own = slice(self.bounds[text], self.bounds[text + 1])
        return self.words[own], self.values[own]


def summed(found: Occurrences, texts: int, words: int, values: np.ndarray) -> Sums:
    """Sum the values [n] of a word's occurrences in a text, for each text and word."""
    keys, inverse = np.unique(found.text * words + found.word, return_inverse=True)
    total = np.bincount(inverse, weights=values, minlength=len(keys))
    return Sums(np.searchsorted(keys, np.arange(texts + 1) * words), keys % words, total)


def _nodes(flat: np.ndarray, starts: np.ndarray, lengths: np.ndarray, vocabulary: int) -> np.ndarray:
    """A number for each word, the same for equal words: its node in the tree of all words' pieces, [n]."""
    nodes, used, depth = flat[starts].astype(np.int64), vocabulary, 1
    while (longer := lengths > depth).any():
        distinct, inverse = np.unique(nodes[longer] * vocabulary + flat[starts[longer] + depth], return_inverse=True)
        nodes[longer] = used + inverse
        used, depth = used + len(distinct), depth + 1
    return nodes

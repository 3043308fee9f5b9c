"""The words of a collection's texts: groups of pieces, each distinct word with its number.

Texts are read in blocks, so memory is that of a block and of the distinct words, however large the collection is.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from encore.data.tokens import id_type
from encore.data.vocabulary import CONTINUES


class Occurrences(NamedTuple):
    """Words as they come in texts, [n] each: which text, the place of the first piece in it, which word."""

    text: np.ndarray
    place: np.ndarray
    word: np.ndarray


class Lexicon:
    """The distinct words of texts: ``enter`` or ``join`` all, then ``close``, then ``find`` the words of any text.

    Words are nodes in the tree of their pieces. They are numbered from the short to the long ones, and those of a
    length in the order of their pieces' numbers, whatever the order of the texts.
    """

    def __init__(self, pieces: list[str], continues: np.ndarray) -> None:
        """Begin without words.

        Args:
            pieces: the vocabulary.
            continues: [vocabulary] bool, whether a piece continues the word before it.
        """
        self._pieces, self._continues = pieces, continues
        self._edges = np.zeros(0, dtype=np.int64)  # parent * vocabulary + piece of each longer node, ascending
        self._ends = np.zeros(0, dtype=np.int32)  # the node that each leads to
        self._seen = np.zeros(len(pieces), dtype=bool)  # of each node, whether a word ends there

    def enter(self, texts: list[np.ndarray]) -> Occurrences:
        """Take up the words of a block of texts; ``word`` is that of ``nodes``, which is not yet its number.

        Args:
            texts: pieces of each text, without special tokens.
        """
        return self._read(texts, learn=True)

    def join(self, other: "Lexicon") -> np.ndarray:
        """Take up the words of another lexicon of the same vocabulary; gives the node here of each of its nodes."""
        parents, last = other._tree()
        here = np.arange(len(parents))
        for level in islice(_levels(parents, len(self._pieces)), 1, None):  # pieces are nodes in any lexicon
            edges = here[parents[level]] * len(self._pieces) + last[level]
            order = np.argsort(edges)
            here[level[order]] = self._down(edges[order], learn=True)
        self._seen[here[other._seen]] = True
        return here

    def close(self) -> None:
        """Number the words."""
        parents, last = self._tree()
        rank, depths = np.arange(len(parents)), []
        for level in _levels(parents, len(self._pieces)):  # its nodes by the rank of their parents, then by their piece
            ordered = level[np.lexsort((last[level], rank[parents[level]]))]
            rank[ordered] = np.arange(len(ordered))
            depths.append(ordered)
        nodes = np.concatenate(depths)
        depth = np.repeat(np.arange(1, len(depths) + 1), [len(level) for level in depths])[self._seen[nodes]]
        self.nodes = nodes[self._seen[nodes]]  # of each word
        self._numbers = np.full(len(parents), -1, dtype=np.int64)
        self._numbers[self.nodes] = np.arange(len(self.nodes))
        self.lengths = depth
        self._starts = np.cumsum(depth) - depth
        self._flat = _spelled_out(self.nodes, depth, self._starts, parents, last.astype(id_type(len(self._pieces))))
        self.whole = ~self._continues[self._flat[self._starts]]  # [words], false for those that a text begins within

    def find(self, texts: list[np.ndarray]) -> Occurrences:
        """The words of a block of texts that were entered."""
        found = self._read(texts, learn=False)
        return found._replace(word=self._numbers[found.word])

    def __len__(self) -> int:
        return len(self.nodes)

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
        """True for content words: of several pieces, or neither stop-word nor punctuation; [words] bool."""
        alone = content_pieces(self._pieces)[self._flat[self._starts]]
        content: np.ndarray = self.whole & ((self.lengths > 1) | alone)
        return content

    def alphabetic(self) -> np.ndarray:
        """True for words of letters only, [words] bool."""
        if not len(self):
            return np.zeros(0, dtype=bool)
        written = [piece.removeprefix(CONTINUES) for piece in self._pieces]
        other = np.array([bool(piece) and not piece.isalpha() for piece in written])[self._flat]
        some = np.array([bool(piece) for piece in written])[self._flat]
        letters = np.logical_or.reduceat(some, self._starts) & ~np.logical_or.reduceat(other, self._starts)
        alphabetic: np.ndarray = self.whole & letters
        return alphabetic

    def _tree(self) -> tuple[np.ndarray, np.ndarray]:
        """The parent of each node, -1 of a single piece, and its last piece."""
        vocabulary = len(self._pieces)
        edges = self._edges[np.argsort(self._ends)]  # of the nodes behind the vocabulary, in their order
        parents = np.concatenate([np.full(vocabulary, -1, dtype=np.int64), edges // vocabulary])
        return parents, np.concatenate([np.arange(vocabulary), edges % vocabulary])

    def _read(self, texts: list[np.ndarray], learn: bool) -> Occurrences:
        flat = np.concatenate([np.zeros(0, dtype=np.uint16), *texts])
        ends = np.cumsum([0, *map(len, texts)])
        begins = ~self._continues[flat]
        begins[ends[:-1][np.diff(ends) > 0]] = True
        starts = np.flatnonzero(begins)
        lengths = np.diff(np.append(starts, len(flat)))
        nodes, depth, longer = flat[starts].astype(np.int64), 1, np.flatnonzero(lengths > 1)
        while len(longer):
            edges, inverse = np.unique(
                nodes[longer] * len(self._pieces) + flat[starts[longer] + depth], return_inverse=True
            )
            nodes[longer] = self._down(edges, learn)[inverse]
            depth += 1
            longer = longer[lengths[longer] > depth]
        if learn:
            self._seen[nodes] = True
        text = np.repeat(np.arange(len(texts)), np.diff(np.searchsorted(starts, ends)))
        return Occurrences(text, starts - ends[text], nodes)

    def _down(self, edges: np.ndarray, learn: bool) -> np.ndarray:
        """The nodes that these edges, ascending, lead to; unknown ones become nodes behind the last one."""
        place = np.searchsorted(self._edges, edges)
        if learn:
            known = np.zeros(len(edges), dtype=bool)
            inside = place < len(self._edges)
            known[inside] = self._edges[place[inside]] == edges[inside]
            fresh = np.arange(len(self._seen), len(self._seen) + np.count_nonzero(~known), dtype=np.int32)
            self._edges = np.insert(self._edges, place[~known], edges[~known])
            self._ends = np.insert(self._ends, place[~known], fresh)
            self._seen = np.append(self._seen, np.zeros(len(fresh), dtype=bool))
            place = np.searchsorted(self._edges, edges)
        nodes: np.ndarray = self._ends[place]
        return nodes


class Tally:
    """A sum for each node of a lexicon that is still growing; float64, added in the order in which values come."""

    def __init__(self) -> None:
        self._sums = np.zeros(0)

    def add(self, nodes: np.ndarray, values: np.ndarray) -> None:
        """Add a value to each node's sum."""
        if len(nodes):
            if (missing := int(nodes.max()) + 1 - len(self._sums)) > 0:
                self._sums = np.append(self._sums, np.zeros(max(missing, len(self._sums) // 4)))
            np.add.at(self._sums, nodes, values)

    def of(self, words: Lexicon) -> np.ndarray:
        """The sums of all words, by number."""
        missing = int(words.nodes.max(initial=-1)) + 1 - len(self._sums)
        return np.append(self._sums, np.zeros(max(missing, 0)))[words.nodes]


class Sums(NamedTuple):
    """A value for each of a text's distinct words: text t has ``words[bounds[t]:bounds[t + 1]]`` with these values."""

    bounds: np.ndarray
    words: np.ndarray
    values: np.ndarray

    def of(self, text: int) -> tuple[np.ndarray, np.ndarray]:
        """Words and values of a text."""
        own = slice(self.bounds[text], self.bounds[text + 1])
        return self.words[own], self.values[own]


def summed(found: Occurrences, texts: int, values: np.ndarray) -> Sums:
    """Sum the values [n] of a word's occurrences in a text, for each text and word."""
    words = int(found.word.max(initial=0)) + 1
    keys, inverse = np.unique(found.text * words + found.word, return_inverse=True)
    total = np.bincount(inverse, weights=values, minlength=len(keys))
    return Sums(np.searchsorted(keys, np.arange(texts + 1) * words), keys % words, total)


def _levels(parents: np.ndarray, vocabulary: int) -> Iterator[np.ndarray]:
    """The nodes of a tree by their depth: single pieces, then what is longer by one piece each time."""
    level = np.arange(vocabulary)
    while len(level):
        yield level
        above = np.zeros(len(parents), dtype=bool)
        above[level] = True
        level = vocabulary + np.flatnonzero(above[parents[vocabulary:]])


def _spelled_out(
    nodes: np.ndarray, depth: np.ndarray, starts: np.ndarray, parents: np.ndarray, last: np.ndarray
) -> np.ndarray:
    """The pieces of all words, one word after another, from the last piece of each to its first."""
    flat = np.zeros(int(depth.sum()), dtype=last.dtype)
    place = starts + depth - 1
    while len(nodes):
        flat[place] = last[nodes]
        longer = parents[nodes] >= 0
        nodes, place = parents[nodes[longer]], place[longer] - 1
    return flat


# English function words, as COSTA leaves them out of its word spans; the paper names no list, and this one is ours.
_WORDS = """
a about above across after afterwards again against all almost alone along already also although always am among
amongst an and another any anyhow anyone anything anyway anywhere are aren around as at away be became because
become becomes becoming been before beforehand behind being below beside besides between beyond both but by can
cannot could couldn d did didn do does doesn doing don done down during each either else elsewhere enough etc even
ever every everyone everything everywhere except few first for former formerly from further had hadn has hasn have
haven having he hence her here hereafter hereby herein hereupon hers herself him himself his how however i ie if in
indeed instead into is isn it its itself just last latter latterly least less ll many may maybe me meanwhile might
mightn more moreover most mostly much must mustn my myself namely needn neither never nevertheless next no nobody
none nor not nothing now nowhere o of off often on once one only onto or other others otherwise our ours ourselves
out over own per perhaps quite rather re really s same shall shan she should shouldn since so some somehow someone
something sometime sometimes somewhere still such t than that the their theirs them themselves then thence there
thereafter thereby therefore therein thereupon these they this those though through throughout thru thus to together
too toward towards under until up upon us ve very via was wasn we well were weren what whatever when whence whenever
where whereafter whereas whereby wherein whereupon wherever whether which while whither who whoever whole whom whose
why will with within without won would wouldn y yet you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_WORDS.split())


def content_pieces(pieces: list[str]) -> np.ndarray:
    """True for pieces that are content words by themselves, [V] bool: not stop-words, punctuation or [UNK]."""
    return np.array([piece not in STOP_WORDS and _is_word(piece) for piece in pieces], dtype=bool)


def _is_word(piece: str) -> bool:
    """True if a piece has a letter or digit and is not a special token (only those are in brackets)."""
    return any(letter.isalnum() for letter in piece) and not (piece.startswith("[") and piece.endswith("]"))

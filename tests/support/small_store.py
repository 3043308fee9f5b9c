"""A token store of a few made-up articles in memory, with what the objectives read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from encore.data.tokens import word_starts

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "of", ".", *(f"word{i}" for i in range(72))]
PIECES += [f"##piece{i}" for i in range(20)]


class Special(NamedTuple):
    pad: int = 0
    unk: int = 1
    cls: int = 2
    sep: int = 3
    mask: int = 4


class Sequences:
    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self.rows = [np.array(row, dtype=np.uint16) for row in rows]
        self.lengths = np.array([len(row) for row in rows], dtype=np.int64)
        self.lengths_of = self.lengths.__getitem__
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> np.ndarray:
        return self.rows[row]


@dataclass
class Store:
    sentences: Sequences
    titles: Sequences
    sections: np.ndarray
    articles: np.ndarray
    links: np.ndarray
    passages: Sequences
    vocabulary: int = len(PIECES)
    special: Special = Special()  # noqa: RUF009  # a tuple, so it is never changed

    @property
    def pieces(self) -> list[str]:
        return PIECES

    @property
    def continues(self) -> np.ndarray:
        return np.array([piece.startswith("##") for piece in PIECES])

    def word_starts(self, ids: np.ndarray) -> np.ndarray:
        return word_starts(ids, self.continues)


def store(
    articles: Sequence[Sequence[Sequence[Sequence[int]]]],
    links: Sequence[tuple[int, int]] = (),
    titles: Sequence[Sequence[int]] | None = None,
    passages: Sequence[Sequence[int]] = (),
) -> Store:
    """A store of articles (lists of sections, lists of sentences, lists of pieces)."""
    sections = [section for article in articles for section in article]
    return Store(
        sentences=Sequences([sentence for section in sections for sentence in section]),
        titles=Sequences(titles if titles is not None else [[] for _ in articles]),
        sections=np.cumsum([0, *map(len, sections)]),
        articles=np.cumsum([0, *map(len, articles)]),
        links=np.array(links, dtype=np.int64).reshape(-1, 2),
        passages=Sequences(passages),
    )


def random_store(articles: int = 16, seed: int = 0) -> Store:
    """Articles of four sections of two to four sentences of five to thirty pieces, each article linked to the next.

    Every section has six pieces of its own choice, so that a text says what is missing from it.
    """
    rng = np.random.default_rng(seed)

    def section() -> list[list[int]]:
        topic = rng.integers(5, len(PIECES), size=6)
        return [rng.choice(topic, size=rng.integers(5, 30)).tolist() for _ in range(rng.integers(2, 5))]

    links = [(4 * article + 1, 4 * ((article + 1) % articles)) for article in range(articles)]
    texts = [[section() for _ in range(4)] for _ in range(articles)]
    return store(texts, links, titles=[[10 + article] for article in range(articles)])

"""Made-up texts as a token store: ids as frequent as in a language, lengths as of web passages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from encore.data import vocabulary
from encore.data.tokens import TYPES, Sequences, TokenStore
from encore.finetuning.queries import Query
from encore.storage.files import write_text

MEDIAN, SPREAD = 70, 0.45  # of the log-normal lengths: 77 pieces in the mean, as passages of MS MARCO have
CONTINUED = 0.15  # of the pieces go on with a word
SENTENCES = 6  # of the longest text, about
SECTIONS = 2  # of an article
BINS = 16  # pieces in a bin of a histogram


def write(folder: Path, texts: int, length: int, pieces: int, full: bool, seed: int = 0) -> TokenStore:
    """A store of ``texts`` sections, two an article, each a text of at most ``length`` tokens; with ``full``, exactly.

    Args:
        length: tokens, [CLS] and [SEP] included.
        pieces: size of the vocabulary, of which a fifth continue words.
    """
    rng = np.random.default_rng(seed)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(_pieces(pieces)), folder / "tokenizer")
    lengths = np.full(texts, length - 2) if full else _lengths(texts, length - 2, rng)
    sizes = [_sentences(total, max(length // SENTENCES, 4)) for total in lengths.tolist()]
    sentences = [_ids(size, pieces, rng) for text in sizes for size in text]
    articles = texts // SECTIONS
    first = np.arange(articles) * SECTIONS
    write_sequences(folder, "sentences", sentences)
    for name in ("passages", "queries"):
        write_sequences(folder, name, sentences)
        write_text(folder / f"{name}.names.txt", "".join(f"{row}\n" for row in range(len(sentences))))
    write_sequences(folder, "titles", [_ids(3, pieces, rng) for _ in range(articles)])
    np.save(folder / "sections.npy", np.cumsum([0, *map(len, sizes)]))
    np.save(folder / "articles.npy", np.arange(articles + 1) * SECTIONS)
    np.save(folder / "links.npy", np.stack([first + 1, np.roll(first, 1)], axis=1))
    return TokenStore(folder)


def as_text(sequences: Sequences, pieces: Sequence[str]) -> list[str]:
    """What the ids stand for, as text."""
    return [
        " ".join(pieces[piece] for piece in ids.tolist()).replace(" ##", "").lstrip("#")
        for ids in map(sequences.__getitem__, range(len(sequences)))
    ]


def tokenised(written: list[str], tokenizer: Tokenizer, folder: Path) -> Sequences:
    """Texts as a token store has them."""
    folder.mkdir(exist_ok=True)
    found = tokenizer.encode_batch_fast(written, add_special_tokens=False)
    write_sequences(folder, "passages", [np.array(each.ids) for each in found])
    return Sequences(folder, "passages")


def histogram(lengths: np.ndarray) -> dict[str, int]:
    """How many texts have so many tokens, in bins of 16."""
    bins, counts = np.unique(lengths // BINS * BINS, return_counts=True)
    return {f"{low}-{low + BINS - 1}": int(count) for low, count in zip(bins.tolist(), counts, strict=True)}


def _lengths(texts: int, longest: int, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.lognormal(np.log(min(MEDIAN, longest / 2)), SPREAD, texts)
    lengths = np.clip(np.rint(drawn), 8, longest).astype(np.int64)
    lengths[0] = longest  # so that the width of a batch is no matter of luck
    return lengths


def _sentences(total: int, size: int) -> list[int]:
    """Sizes of the sentences of a text."""
    return [min(size, total - start) for start in range(0, total, size)]


def _pieces(count: int) -> list[str]:
    words = count - count // 5 - len(vocabulary.SPECIAL)
    return [*vocabulary.SPECIAL, *(f"w{i}" for i in range(words)), *(f"##c{i}" for i in range(count // 5))]


def _ids(size: int, pieces: int, rng: np.random.Generator) -> np.ndarray:
    """Ids after Zipf's law, in two classes: those that begin words and those that continue them."""
    special, continuing = len(vocabulary.SPECIAL), pieces // 5
    beginning = pieces - continuing - special
    continues = rng.random(size) < CONTINUED
    many = np.where(continues, continuing, beginning)
    ranks = np.floor(np.exp(rng.random(size) * np.log(many + 1.0))).astype(np.int64) - 1  # p(rank) ~ 1 / rank
    return np.where(continues, special + beginning, special) + np.minimum(ranks, many - 1)


def write_sequences(folder: Path, name: str, rows: list[np.ndarray]) -> None:
    """The files of a store's sequences ``name``, without ids of their own."""
    np.concatenate(rows).astype(TYPES[0]).tofile(folder / f"{name}.ids.bin")
    np.save(folder / f"{name}.offsets.npy", np.cumsum([0, *map(len, rows)]))


def write_judged(
    folder: Path, queries: int, length: int, query_length: int, pieces: int, full: bool, seed: int = 0
) -> tuple[TokenStore, list[Query]]:
    """A store of queries, each with a positive and a negative passage of its own.

    Args:
        length, query_length: tokens of the longest passage and query, [CLS] and [SEP] included; with ``full``, of all.
    """
    rng = np.random.default_rng(seed)
    vocabulary.save_tokenizer(vocabulary.build_tokenizer(_pieces(pieces)), folder / "tokenizer")
    passages = np.full(2 * queries, length - 2) if full else _lengths(2 * queries, length - 2, rng)
    asked = np.full(queries, query_length - 2) if full else rng.integers(4, max(min(14, query_length - 2), 5), queries)
    for name, lengths in (("passages", passages), ("queries", asked)):
        write_sequences(folder, name, [_ids(size, pieces, rng) for size in lengths.tolist()])
        write_text(folder / f"{name}.names.txt", "".join(f"{row}\n" for row in range(len(lengths))))
    judged = [
        Query(row, (2 * row,), frozenset([2 * row]), frozenset([2 * row]), (2 * row + 1,)) for row in range(queries)
    ]
    return TokenStore(folder), judged

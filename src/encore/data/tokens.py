"""The token store: all texts of a collection as ids of word pieces, in flat memory-mapped files, made once.

Files of a store: for each of ``passages``, ``queries``, ``sentences`` and ``titles`` the ids (``<name>.ids.bin``,
little-endian, uint16 or, of larger vocabularies, uint32), where each text begins (``<name>.offsets.npy``) and, where
texts have ids, those (``<name>.names.txt``); ``sections.npy``, ``articles.npy``, ``links.npy``; the tokenizer that
made it; and ``language.json`` where a segmenter finds the words. Where passages and sentences have the same ids, as
without titles and articles, both names are one file.
"""

import filecmp
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from encore.config.languages import SEGMENTED, UNKNOWN_SHARE
from encore.data import vocabulary
from encore.data.article_texts import articles, titles
from encore.data.collection import LANGUAGE, Collection
from encore.data.vocabulary import CONTINUES
from encore.errors import EncoreError
from encore.storage.document_ids import DocIds
from encore.storage.files import open_text_writer, replacing, write_array, write_json
from encore.storage.processes import shared_in_order
from encore.storage.progress import Progress

TYPES = np.dtype("<u2"), np.dtype("<u4")  # of ids; the first that a vocabulary fits
TOGETHER = 4096  # texts handed to the tokenizer at once
COUNTED = 2**20  # ids that are compared at once
TOLD, UNKNOWN = 0.01, 0.3  # shares of [UNK] in the tokens of texts: what is counted, and what is refused


class Sequences:
    """Token sequences of a store, without special tokens; opened, not read."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.offsets = _load(folder / f"{name}.offsets.npy", mapped="r")
        self.ids = _ids(folder / f"{name}.ids.bin", int(self.offsets[-1]))
        self.count = len(self.offsets) - 1

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> np.ndarray:
        """The ids of one text, without special tokens; negative indices count from the end."""
        if not 0 <= index < self.count:
            index = range(self.count)[index]
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each text, int64; computed each time, so take ``lengths_of`` for some texts."""
        return np.diff(self.offsets)

    def lengths_of(self, rows: Sequence[Any] | np.ndarray) -> np.ndarray:
        """Tokens of the texts of rows, from 0, int64 in the shape of ``rows``."""
        first = np.asarray(rows, np.int64)
        return np.asarray(self.offsets[first + 1] - self.offsets[first])

    @cached_property
    def names(self) -> DocIds:
        """The texts' own ids, in order; opened, not read."""
        path = self.folder / f"{self.name}.names.txt"
        if not path.is_file():
            raise EncoreError(f"{path} is missing: {self.name} have no ids, or the store is incomplete")
        return DocIds.open(path)


class TokenStore:
    """The store of a folder that ``write_store`` wrote, opened for reading."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tokenizer_folder = folder / "tokenizer"
        tokenizer = vocabulary.load_tokenizer(self.tokenizer_folder)
        self.special = vocabulary.special_tokens(tokenizer, self.tokenizer_folder)
        self.pieces = vocabulary.pieces(tokenizer)
        self.vocabulary = len(self.pieces)
        self._is_segmented = (folder / LANGUAGE).is_file()

    @cached_property
    def passages(self) -> Sequences:
        """One a corpus row: its text, as ``text_fields.py`` has it, or a pair of texts with [SEP] between them."""
        return Sequences(self.folder, "passages")

    @cached_property
    def queries(self) -> Sequences:
        """Token sequences of the queries."""
        return Sequences(self.folder, "queries")

    @cached_property
    def sentences(self) -> Sequences:
        """The sentences of all articles, in order."""
        return Sequences(self.folder, "sentences")

    @cached_property
    def titles(self) -> Sequences:
        """One an article."""
        return Sequences(self.folder, "titles")

    @cached_property
    def sections(self) -> np.ndarray:
        """int64 [sections + 1]: section s has the sentences from ``sections[s]`` to ``sections[s + 1]``."""
        return _load(self.folder / "sections.npy")

    @cached_property
    def articles(self) -> np.ndarray:
        """int64 [articles + 1]: article a has the sections from ``articles[a]`` to ``articles[a + 1]``."""
        return _load(self.folder / "articles.npy")

    @cached_property
    def links(self) -> np.ndarray:
        """int64 [links, 2]: sections that link, and the sections they link to."""
        return _load(self.folder / "links.npy")

    def word_starts(self, ids: np.ndarray) -> np.ndarray:
        """First positions of the words of a text of this store, given by its pieces [n]."""
        if self._is_segmented:
            return segmented_word_starts(ids, self.continues, self.pieces)
        return word_starts(ids, self.continues)

    @cached_property
    def continues(self) -> np.ndarray:
        """bool [vocabulary]: whether a piece continues a word."""
        return np.array([piece.startswith(vocabulary.CONTINUES) for piece in self.pieces])


def id_type(vocabulary_size: int) -> np.dtype:
    """The type of a vocabulary's ids on the disk: 16 bits where they fit, else 32."""
    return TYPES[vocabulary_size > 2**16]


def write_store(
    collection: Collection,
    tokenizer_folder: Path,
    folder: Path,
    processes: int = 1,
    prompts: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Tokenise a collection into ``folder`` and return its counts; the bytes are those of any number of processes.

    Args:
        prompts: what is put before each text of ``queries`` and of ``passages``, as part of it.
    """
    vocabulary.copy_tokenizer(tokenizer_folder, folder / "tokenizer")
    writer = _Writer(folder, processes)
    asked, told = (prompts.get(name, "") for name in ("queries", "passages"))
    queries = ((name, (asked + text,)) for name, text in collection.queries().items())
    passages = ((name, (told + text[0], *text[1:])) for name, text in collection.texts())
    structure = _Structure(collection)
    counts = {
        "tokens_in_passages": writer.write_named("passages", passages if told else collection.texts()),
        "tokens_in_queries": writer.write_named("queries", queries),
        "tokens_in_sentences": writer.write("sentences", structure.sentences()),
        "tokens_in_titles": writer.write("titles", ((title,) for title in titles(collection))),
    }
    _keep_once(folder / "passages.ids.bin", folder / "sentences.ids.bin")
    if collection.language in SEGMENTED:
        write_json(folder / LANGUAGE, {"language": collection.language})
    silent = int(np.count_nonzero(Sequences(folder, "passages").lengths == 0))
    counts |= ({"passages_without_tokens": silent} if silent else {}) | structure.write(folder)
    return counts | unknown_shares(TokenStore(folder))


def unknown_shares(store: TokenStore) -> dict[str, Any]:
    """The share of [UNK] in a store's tokens, where it is above ``TOLD``."""
    found = {}
    for name in ("passages", "queries", "sentences"):
        ids: Any = getattr(store, name).ids
        blocks = (ids[first : first + COUNTED] for first in range(0, len(ids), COUNTED))
        share = float(sum(np.count_nonzero(block == store.special.unk) for block in blocks) / max(len(ids), 1))
        if share > UNKNOWN:
            raise EncoreError(
                f"{share:.0%} of the tokens of the {name} are unknown to the vocabulary; take a tokenizer of their "
                "language, and the one that belongs to the checkpoint"
            )
        if share > TOLD:
            found[f"{UNKNOWN_SHARE}{name}"] = round(share, 4)
    return found


class _Writer:
    """Writes the tokens of texts; a text of two segments is a pair, with [SEP] between them."""

    def __init__(self, folder: Path, processes: int) -> None:
        self._folder, self._processes = folder, processes
        self._tokenizer = vocabulary.load_tokenizer(folder / "tokenizer")
        self._type = id_type(self._tokenizer.get_vocab_size())
        self._between = vocabulary.special_tokens(self._tokenizer, folder / "tokenizer").sep

    def write_named(self, name: str, texts: Iterable[tuple[str, tuple[str, ...]]]) -> int:
        """Write the tokens of texts with ids, and the ids; returns how many tokens there are."""
        with open_text_writer(self._folder / f"{name}.names.txt") as names:

            def named() -> Iterator[tuple[str, ...]]:
                for own, text in texts:
                    names.write(f"{own}\n")
                    yield text

            return self.write(name, named())

    def write(self, name: str, texts: Iterable[tuple[str, ...]]) -> int:
        """Write the tokens of texts; returns how many they are."""
        texts = iter(texts)
        parts = iter(lambda: list(islice(texts, TOGETHER)), [])
        lengths, progress = [np.zeros(1, dtype=np.int64)], Progress(name, "texts")
        with replacing(self._folder / f"{name}.ids.bin") as temporary, temporary.open("wb") as file:
            for found, ids in shared_in_order(self._encoded, parts, self._processes):
                lengths.append(found)
                file.write(ids)
                progress.more(len(found))
        offsets = np.concatenate(lengths)
        lengths.clear()
        np.cumsum(offsets, out=offsets)  # in place: a dump has hundreds of millions of sentences
        write_array(self._folder / f"{name}.offsets.npy", offsets)
        return int(offsets[-1])

    def _encoded(self, texts: list[tuple[str, ...]]) -> tuple[np.ndarray, bytes]:
        segments = [segment for text in texts for segment in text]
        rows = iter(self._tokenizer.encode_batch_fast(segments, add_special_tokens=False))
        lengths, ids = array("q"), array("I")
        for text in texts:
            before = len(ids)
            ids.extend(next(rows).ids)
            for _ in text[1:]:
                ids.append(self._between)
                ids.extend(next(rows).ids)
            lengths.append(len(ids) - before)
        return np.array(lengths), np.array(ids).astype(self._type).tobytes()


def _keep_once(first: Path, other: Path) -> None:
    """Keep two files of the same bytes, as of passages and their sentences, once, where the disk has hard links."""
    if filecmp.cmp(first, other, shallow=False):
        with suppress(EncoreError), replacing(other) as temporary:
            temporary.hardlink_to(first)


class _Structure:
    """The sentences of each section and the sections of each article, counted while the sentences go by."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._sections, self._firsts, self._numbers = array("q", [0]), array("q", [0]), dict[str, int]()

    def sentences(self) -> Iterator[tuple[str]]:
        """All sentences of the articles, in order."""
        linked = self._collection.has_articles()
        for article in articles(self._collection):
            if linked:  # else every passage is an article, of which there may be very many
                self._numbers[article["_id"]] = len(self._firsts) - 1
            for section in article["sections"]:
                yield from ((text,) for text in section["sentences"])
                self._sections.append(len(section["sentences"]))
            self._firsts.append(len(self._sections) - 1)

    def write(self, folder: Path) -> dict[str, int]:
        """Write the bounds of sections and articles, and the links between sections; returns how many they are."""
        links = array("q")
        for article in self._collection.articles():  # again: a link may lead to an article that comes later
            for link in article.get("links", []):
                links.append(self._section(article["_id"], link["section"]))
                links.append(self._section(link["to"], link.get("anchor", 0)))
        write_array(folder / "sections.npy", np.array(self._sections).cumsum())
        write_array(folder / "articles.npy", np.array(self._firsts))
        write_array(folder / "links.npy", np.array(links).reshape(-1, 2))
        return {"sections": len(self._sections) - 1, "articles": len(self._firsts) - 1, "links": len(links) // 2}

    def _section(self, article: str, section: int) -> int:
        number = self._numbers.get(article, -1)
        if number < 0 or not 0 <= section < self._firsts[number + 1] - self._firsts[number]:
            raise EncoreError(
                f"a link names section {section} of article {article!r}, which does not exist; remove the link"
            )
        return self._firsts[number] + section


def _load(path: Path, mapped: Literal["r"] | None = None) -> np.ndarray:
    """An array; mapped, its memory is shared by all processes of a training."""
    if not path.is_file():
        raise EncoreError(f"{path} is missing: the token store is incomplete; make it again")
    array: np.ndarray = np.load(path, mmap_mode=mapped)
    return array.view(np.ndarray)


def _ids(path: Path, expected: int) -> Any:
    """The ids of all texts, memory-mapped; an empty file, which cannot be mapped, gives an empty array."""
    size = path.stat().st_size if path.is_file() else -1
    kind = next((each for each in TYPES if size == expected * each.itemsize), None)
    if kind is None:
        raise EncoreError(f"{path} does not hold the {expected} tokens of its offsets; make the store again")
    # A plain view of the mapping: slicing a memmap object costs twice as much as the slice itself.
    return np.memmap(path, dtype=kind, mode="r").view(np.ndarray) if size else np.empty(0, dtype=kind)


def word_starts(ids: np.ndarray, continues: np.ndarray) -> np.ndarray:
    """First positions of the words of a text; a text that begins inside a word begins with a (cut) word.

    A piece of the vocabulary says whether it continues the word before it.

    Args:
        ids: [n] pieces.
        continues: [vocabulary] bool, whether a piece continues the word before it.
    """
    return np.flatnonzero(~(continues[ids] & (np.arange(len(ids)) > 0)))


def segmented_word_starts(ids: np.ndarray, continues: np.ndarray, pieces: Sequence[str]) -> np.ndarray:
    """The same for Chinese, where each character is a piece, and a segmenter finds the words for masks of whole words.

    BERT-wwm (Cui et al. 2019) takes LTP's; here it is jieba's, without a model to fetch.

    Args:
        pieces: [vocabulary], the strings of the pieces.
    """
    import rjieba

    starts, text, follows = word_starts(ids, continues), "", False
    begins: list[int] = []
    for part in np.split(ids, starts[1:]):
        word = "".join(pieces[piece].removeprefix(CONTINUES) for piece in part)
        is_one = len(word) == 1 and _is_ideograph(word)
        text += "" if follows and is_one else " "  # a blank, which the segmenter joins with nothing
        begins.append(len(text))
        text, follows = text + word, is_one
    found = {*accumulate(map(len, rjieba.cut(text)))}
    return starts[[begin in found for begin in begins[: len(starts)]]]


def _is_ideograph(character: str) -> bool:
    """True for a character of Chinese, each of which is a piece for BERT's tokenizer."""
    return "\u4e00" <= character <= "\u9fff" or "\u3400" <= character <= "\u4dbf" or character >= "\U00020000"

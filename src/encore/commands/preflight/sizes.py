"""How large collections are: counted once they are made, else published, stated in ``sizes.yaml``, or assumed."""

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from pydantic import Field

from encore.config.datasets import CollectionFields, KnownSize, draw_of, role_of
from encore.config.validation import Positive, Strict, checked, read_yaml
from encore.plan.artifact import Artifact
from encore.plan.artifacts.collections import named_collection
from encore.plan.plan import Plan
from encore.storage.program_files import CATALOGUE

SIZES = CATALOGUE / "sizes.yaml"
PIECES = 1.3  # word pieces of an English word
SENTENCE = 26.0  # word pieces of an English sentence: 20 words
UNKNOWN = {"passages": 1_000_000, "words": 80, "queries": 1_000, "query_words": 7}  # if nothing is known
SAMPLE = 1024  # texts that represent all
SPREAD = {"passages": 0.45, "queries": 0.4, "sections": 0.9}  # assumed deviation of the logarithm of a length
FITTING = 0.95  # of its room is filled by a chunk that ends before the first sentence that does not fit
ALL = "all"  # among the queries by split: those that shares are of


class Stated(Strict):
    """What is known of a collection before it is made. An entry of ``sizes.yaml``."""

    passages: Positive | None = None
    words: Positive | None = Field(None, description="of a passage, on average")
    articles: Positive | None = None
    sections: Positive | None = Field(None, description="of articles; none if it has only passages")
    section_words: Positive | None = Field(None, description="of a section, on average")
    queries: dict[str, Positive] = Field({}, description="by split; `all` if splits are shares of them")
    query_words: Positive | None = None
    bytes: Positive | None = Field(
        None, description="The bytes of the file that has to be put there by hand, if no rule fetches it."
    )
    source: str = Field(description="where these numbers come from")


@dataclass(frozen=True)
class TextLengths:
    """How many texts there are, and the lengths of an even sample of them in tokens, special ones not included."""

    count: float
    lengths: np.ndarray  # float64 [n], ascending

    @cached_property
    def mean(self) -> float:
        """Mean tokens of a text of the sample, special ones not included."""
        return float(self.lengths.mean())

    @property
    def tokens(self) -> float:
        """Tokens of all texts."""
        return self.count * self.mean

    def read(self, limit: int, special: int = 2) -> np.ndarray:
        """What a model reads of each text of the sample: cut to ``limit`` tokens, special ones included."""
        return np.minimum(self.lengths + special, limit)


def assumed(count: float, mean: float, kind: str) -> TextLengths:
    """Texts whose lengths are log-normal around a mean."""
    shape = np.exp(SPREAD[kind] * _normal())
    return TextLengths(count, np.maximum(shape * (mean / shape.mean()), 1.0))


@cache
def _normal() -> np.ndarray:
    """An even sample of the standard normal distribution."""
    return np.array([NormalDist().inv_cdf((number + 0.5) / SAMPLE) for number in range(SAMPLE)])


def sampled(lengths: np.ndarray) -> TextLengths:
    """Texts whose lengths are known; an even sample of them is kept."""
    if not len(lengths):
        return TextLengths(0, np.ones(1))
    ordered = np.sort(lengths).astype(np.float64)
    places = ((np.arange(SAMPLE) + 0.5) / SAMPLE * len(ordered)).astype(np.int64)
    kept = ordered if len(ordered) <= SAMPLE else ordered[places]
    return TextLengths(len(ordered), np.maximum(kept, 1.0))


def packed(sections: TextLengths, length: int, filled: float = 1.0, short: float = 0.0) -> TextLengths:
    """The chunks that sections, or articles, are packed into (``objectives/parts/chunks.py``).

    Full ones, those that are packed to a shorter length, and what is left over.

    Args:
        filled: of a full chunk's room, the share that it fills on average; above 1, the rest is cut off.
        short: the share of chunks that are packed to a shorter length, any alike.
    """
    room = max(length - 2, 1)
    full = np.floor(sections.lengths / (filled * room))
    left = sections.lengths - full * filled * room
    parts = full.sum() / (1 - short / 2)
    shorter = np.linspace(1, filled * room, round(parts * short))
    chunks = np.concatenate([np.full(round(parts * (1 - short)), filled * room), shorter, left[left >= 1]])
    chunks = np.minimum(chunks, room)
    return TextLengths(sections.count * len(chunks) / len(sections.lengths), sampled(chunks).lengths)


@dataclass
class CollectionSize:
    """The texts of a collection; ``notes`` say what had to be assumed."""

    passages: TextLengths
    sections: TextLengths | None
    queries: dict[str, float]
    query_lengths: np.ndarray
    sentence: float = SENTENCE  # tokens of a sentence
    notes: list[str] = field(default_factory=list)
    articles: TextLengths | None = None

    @property
    def tokens(self) -> float:
        """Tokens of all passages and articles."""
        return self.passages.tokens + self.article_tokens

    @property
    def known(self) -> KnownSize:
        """Its counts."""
        articles, sections = (texts.count if texts else None for texts in (self.articles, self.sections))
        return KnownSize(self.passages.count, articles=articles, sections=sections, queries=self.queries)

    def counting(self, known: KnownSize) -> "CollectionSize":
        """A size of texts as long as these, of other counts."""

        def of(texts: TextLengths, count: float | None) -> TextLengths:
            return TextLengths(texts.count if count is None else count, texts.lengths)

        return replace(
            self,
            passages=of(self.passages, known.passages),
            sections=of(self.sections, known.sections) if self.sections else None,
            articles=of(self.articles, known.articles) if self.articles else None,
            queries=dict(known.queries),
            notes=list(self.notes),
        )

    @property
    def article_tokens(self) -> float:
        """Tokens of all articles."""
        return self.sections.tokens if self.sections else 0.0

    def topics(self, split: str, most: int | None = None, share: float = 1.0) -> float:
        """How many queries a split has, or that share of them, or a sample."""
        if split not in self.queries and (part := _share(split)) is not None and ALL in self.queries:
            self.queries[split] = max(1.0, part * self.queries[ALL])
        if split not in self.queries:
            self.queries[split] = float(UNKNOWN["queries"])
            self.notes.append(f"queries of {split} unknown, {UNKNOWN['queries']:,} assumed")
        found = share * self.queries[split]
        return min(found, most) if most else found


def _share(split: str) -> float | None:
    """``train-80-s1`` -> 0.72: the share of the questions that a split has, a tenth of those to train on validating."""
    draw = (draw_of(split) or "").split("-")[0]
    if not draw.isdigit():
        return None
    learned = int(draw) / 100
    return {"train": 0.9 * learned, "valid": 0.1 * learned}.get(role_of(split), 1 - learned)


def read_stated(path: Path = SIZES) -> dict[str, Stated]:
    """The catalogue's ``sizes.yaml``."""
    return {name: checked(Stated, entry, f"{path}: {name}") for name, entry in read_yaml(path).items()}


class CollectionSizes:
    """Sizes of collections by the artifact that each is made as."""

    def __init__(self, plan: Plan, stated: dict[str, Stated]) -> None:
        self.plan, self.stated = plan, stated
        self._found: dict[str, CollectionSize] = {}

    def dataset(self, collection: Artifact | str) -> str:
        """The dataset of a collection, by its artifact or by the name of its folder."""
        name = collection if isinstance(collection, str) else collection.name
        return name.rpartition("-")[0]

    def of(self, collection: Artifact | str) -> CollectionSize:
        """The size of a collection, by its artifact or by the name of its folder."""
        name = collection if isinstance(collection, str) else collection.name
        if name not in self._found:
            self._found[name] = self._size(name)
        return self._found[name]

    def behind(self, made: Artifact) -> CollectionSize | None:
        """The size of the collection that an artifact is about; None without one, or if it is unknown."""
        if made.stage.partition(".")[0] == "collection":
            return self.of(made)
        if "collection" in made.inputs or "collection" in made.spec:
            return self.of(made.inputs.get("collection") or str(made.spec["collection"]))
        through = made.inputs.get("tokens", made.inputs.get("shard0"))
        return self.behind(through) if through else None

    def _size(self, name: str) -> CollectionSize:
        dataset = self.dataset(name)
        fields: CollectionFields = self.plan.resolve.own(dataset).fields
        base = None  # the size as it follows from the dataset that it is derived from, or whose queries it has
        if name_of_base := fields.made_from.base or fields.queries_of:
            found = self.of(named_collection(self.plan, name_of_base))
            follows = fields.derived_size(found.known)
            base = found.counting(follows) if follows else None
        size = _estimated(fields, self.stated.get(dataset, Stated(source="")), base)
        statistics = Path("results/collections") / name / "statistics.json"
        # It is not made yet, or damaged, which an audit reports.
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            _count(size, json.loads(statistics.read_text()))
        for folder, artifact in self.plan.made.items():  # a finished token store, of whatever vocabulary
            made = artifact.stage == "tokens" and artifact.spec["collection"] == name
            if made and Path(artifact.manifest).is_file() and Path(folder, "passages.offsets.npy").is_file():
                _measure(size, Path(folder))
                break
        return size


def _estimated(fields: CollectionFields, stated: Stated, base: CollectionSize | None) -> CollectionSize:
    """What the kind knows, is stated, follows from the base, or is assumed, in this order."""
    known = fields.known_size()
    texts, words = known.passages or stated.passages, known.words or stated.words
    sections = known.sections or stated.sections
    size = base or _unknown(bool(texts or sections), bool(words or stated.section_words))
    size.passages = TextLengths(texts or size.passages.count, size.passages.lengths)
    if words:
        size.passages = assumed(size.passages.count, words * PIECES, "passages")
    if sections:
        size.sections = assumed(sections, (stated.section_words or words or UNKNOWN["words"]) * PIECES, "sections")
    if query_words := known.query_words or stated.query_words:
        size.query_lengths = assumed(1, query_words * PIECES, "queries").lengths
    size.queries |= {split: float(n) for split, n in {**stated.queries, **known.queries}.items()}
    if (articles := known.articles or stated.articles) and size.sections:
        size.articles = assumed(articles, size.sections.tokens / articles, "sections")
    if fields.only_articles:
        size.sections = size.sections or size.passages
        size.passages = TextLengths(0.0, size.passages.lengths)
    return size


def _unknown(has_texts: bool, has_words: bool) -> CollectionSize:
    """What is assumed of a collection of which nothing is known, with what was missing."""
    passages, words = UNKNOWN["passages"], UNKNOWN["words"]
    notes = [] if has_texts else [f"passages unknown, {passages:,} assumed"]
    notes += [] if has_words else [f"length of passages unknown, {words} words assumed"]
    queries = assumed(1, UNKNOWN["query_words"] * PIECES, "queries")
    return CollectionSize(assumed(passages, words * PIECES, "passages"), None, {}, queries.lengths, notes=notes)


def _count(size: CollectionSize, counted: dict[str, Any]) -> None:
    """Take the counts of a finished collection."""
    size.passages, size.notes = TextLengths(counted["passages"], size.passages.lengths), []
    size.queries |= {split: float(each["queries"]) for split, each in counted.get("splits", {}).items()}
    if counted.get("sections") and size.sections is None:
        words = counted.get("sentences", counted["sections"]) * 20 / counted["sections"]
        size.sections = assumed(counted["sections"], words * PIECES, "sections")
        size.articles = assumed(counted["articles"], size.sections.tokens / counted["articles"], "sections")


def _measure(size: CollectionSize, store: Path) -> None:
    """Take the lengths of texts from a finished token store."""
    size.notes = []
    size.passages = sampled(np.diff(np.load(store / "passages.offsets.npy", mmap_mode="r")))
    queries = sampled(np.diff(np.load(store / "queries.offsets.npy", mmap_mode="r")))
    size.query_lengths = queries.lengths
    sections = np.load(store / "sections.npy", mmap_mode="r")
    if len(sections) > 1:
        offsets = np.load(store / "sentences.offsets.npy", mmap_mode="r")
        size.sections = sampled(np.diff(offsets[np.asarray(sections)]))
        size.articles = sampled(np.diff(offsets[np.asarray(sections)[np.load(store / "articles.npy")]]))
        size.sentence = float(offsets[-1]) / max(len(offsets) - 1, 1)

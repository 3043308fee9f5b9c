"""How large collections are: counted once they are made, else published, stated in ``sizes.yaml``, or assumed.

The files of a folder in BEIR's layout are counted, or estimated from the first part of large ones.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from pydantic import Field

from encore.commands.preflight.lengths import TextLengths, assumed, sampled
from encore.config.datasets import draw_of, role_of
from encore.config.strict import Positive, Strict
from encore.config.validation import checked, read_yaml
from encore.datasets.beir import BeirFields
from encore.errors import EncoreError
from encore.plan.artifact import Artifact
from encore.plan.artifacts.collections import named_collection
from encore.plan.plan import Plan

SIZES = Path("config/sizes.yaml")
PIECES = 1.3  # word pieces of an English word
SENTENCE = 26.0  # word pieces of an English sentence: 20 words
UNKNOWN = {"passages": 1_000_000, "words": 80, "queries": 1_000, "query_words": 7}  # if nothing is known
READ = 16 * 2**20  # bytes of a file that are read, packed or not; the rest of a larger one is taken to be alike
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


@dataclass
class CollectionSize:
    """The texts of a collection; ``origin`` says how they are known, ``notes`` what had to be assumed."""

    passages: TextLengths
    sections: TextLengths | None
    queries: dict[str, float]
    query_lengths: np.ndarray
    origin: str
    sentence: float = SENTENCE  # tokens of a sentence
    notes: list[str] = field(default_factory=list)
    articles: TextLengths | None = None

    @property
    def tokens(self) -> float:
        """Tokens of all passages and articles."""
        return self.passages.tokens + self.article_tokens

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
    """The catalogue's ``sizes.yaml``.

    Raises:
        EncoreError: it is missing, or an entry has a wrong field.
    """
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
        fields = self.plan.resolve.dataset_fields(dataset) if dataset in self.plan.resolve.dataset_names() else None
        size = _estimated(fields, self.stated.get(dataset) or _in_files(fields), self._base(fields))
        if getattr(fields, "kind", "") == "subset":
            _shrink(size, fields)
        counted = _json(Path("results/collections") / name / "statistics.json")
        if counted:
            _count(size, counted)
        store = self._store(name)
        if store:
            _measure(size, store)
        return size

    def _base(self, fields: Any) -> CollectionSize | None:
        """The size of the collection that another one is like, being made of it; answers are like nothing else."""
        base = getattr(fields, "of", None)
        return self.of(named_collection(self.plan, base)) if base and not fields.kind.endswith("reqa") else None

    def _store(self, name: str) -> Path | None:
        """A finished token store of a collection, of whatever vocabulary."""
        for folder, artifact in self.plan.made.items():
            made = artifact.stage == "tokens" and artifact.spec["collection"] == name
            if made and Path(artifact.manifest).is_file() and Path(folder, "passages.offsets.npy").is_file():
                return Path(folder)
        return None


def _estimated(fields: Any, stated: Stated | None, base: CollectionSize | None) -> CollectionSize:
    """What is published, stated, known of the collection that this one is made of, or assumed, in this order."""
    expected = dict(getattr(fields, "expected", {}))
    given = stated or Stated(source="")
    stated_texts = given.passages or given.sections
    origin = "published" if "passages" in expected else "stated" if stated_texts else "assumed"
    size = _like(base) if base else _unknown(given, "passages" in expected)
    count = expected.get("passages") or given.passages or size.passages.count
    size.passages = TextLengths(count, size.passages.lengths)
    if given.words:
        size.passages = assumed(count, given.words * PIECES, "passages")
    if given.sections:
        size.sections = assumed(given.sections, (given.section_words or given.words or 80) * PIECES, "sections")
    if given.query_words:
        size.query_lengths = assumed(1, given.query_words * PIECES, "queries").lengths
    size.queries |= {split: float(n) for split, n in given.queries.items()}
    size.queries |= {key.partition(".")[2]: float(n) for key, n in expected.items() if key.startswith("queries.")}
    if (held_out := getattr(fields, "valid_queries", None)) and "train" in size.queries:
        size.queries |= {"train": size.queries["train"] - held_out, "valid": float(held_out)}
    if given.articles and size.sections:
        size.articles = assumed(given.articles, size.sections.tokens / given.articles, "sections")
    if getattr(fields, "only_articles", False):
        size.sections = size.sections or size.passages
        size.passages = TextLengths(0.0, size.passages.lengths)
    size.origin = origin
    return size


def _unknown(given: Stated, counted: bool) -> CollectionSize:
    """What is assumed of a collection that nobody says anything of, with what was missing."""
    passages, words = UNKNOWN["passages"], UNKNOWN["words"]
    notes = [] if counted or given.passages or given.sections else [f"passages unknown, {passages:,} assumed"]
    notes += [] if given.words or given.section_words else [f"length of passages unknown, {words} words assumed"]
    queries = assumed(1, UNKNOWN["query_words"] * PIECES, "queries")
    return CollectionSize(
        assumed(passages, words * PIECES, "passages"), None, {}, queries.lengths, "assumed", notes=notes
    )


def _like(base: CollectionSize) -> CollectionSize:
    """A size of its own with the numbers of another."""
    return replace(base, queries=dict(base.queries), notes=list(base.notes))


def _shrink(size: CollectionSize, fields: Any) -> None:
    """Keep the part that a collection of kind ``subset`` keeps."""
    articles, passages = getattr(fields, "articles", None), getattr(fields, "passages", None)
    share = articles / size.articles.count if articles and size.articles else 1.0
    share = min(1.0, passages / max(size.passages.count, 1.0) if passages else share)
    size.passages = TextLengths(size.passages.count * share, size.passages.lengths)
    if size.sections:
        size.sections = TextLengths(size.sections.count * share, size.sections.lengths)
    if size.articles:
        size.articles = TextLengths(size.articles.count * share, size.articles.lengths)
    if most := getattr(fields, "train_queries", None):
        for split in [name for name in size.queries if role_of(name) == "train"]:
            size.queries[split] = min(size.queries[split], float(most))


def _count(size: CollectionSize, counted: dict[str, Any]) -> None:
    """Take the counts of a finished collection."""
    size.origin, size.notes = "counted", []
    size.passages = TextLengths(counted["passages"], size.passages.lengths)
    size.queries |= {split: float(each["queries"]) for split, each in counted.get("splits", {}).items()}
    if counted.get("sections") and size.sections is None:
        words = counted.get("sentences", counted["sections"]) * 20 / counted["sections"]
        size.sections = assumed(counted["sections"], words * PIECES, "sections")
        size.articles = assumed(counted["articles"], size.sections.tokens / counted["articles"], "sections")


def _measure(size: CollectionSize, store: Path) -> None:
    """Take the lengths of texts from a finished token store."""
    size.origin, size.notes = "counted", []
    size.passages = sampled(np.diff(np.load(store / "passages.offsets.npy", mmap_mode="r")))
    queries = sampled(np.diff(np.load(store / "queries.offsets.npy", mmap_mode="r")))
    size.query_lengths = queries.lengths
    sections = np.load(store / "sections.npy", mmap_mode="r")
    if len(sections) > 1:
        offsets = np.load(store / "sentences.offsets.npy", mmap_mode="r")
        size.sections = sampled(np.diff(offsets[np.asarray(sections)]))
        size.articles = sampled(np.diff(offsets[np.asarray(sections)[np.load(store / "articles.npy")]]))
        size.sentence = float(offsets[-1]) / max(len(offsets) - 1, 1)


def _in_files(fields: Any) -> Stated | None:
    """Counts of a folder's files; None if a dataset is not one, or if they cannot be read."""
    if not isinstance(fields, BeirFields):
        return None
    try:
        paths = fields.paths()
        passages, words = _texts(paths["corpus"])
        _, query_words = _texts(paths["queries"])
        queries = {name: _queries(paths[role]) for name in fields.splits if (role := f"qrels of {name}") in paths}
    except (EncoreError, OSError, EOFError, ValueError, AttributeError):
        return None  # the collection's own job says what is wrong, with file and line
    counted = {"passages": passages, "words": words, "queries": queries, "query_words": query_words}
    return Stated(**counted, source="counted in its files")


def _texts(path: Path) -> tuple[int, int]:
    """The rows of a file of JSON lines, and the mean words of their titles and texts, 1 at least."""
    rows, words, size = 0, 0, path.stat().st_size
    with path.open("rb") as packed:
        opened = cast("IO[bytes]", gzip.GzipFile(fileobj=packed)) if path.suffix == ".gz" else packed
        for line in opened:
            row = json.loads(line)
            words += len(f"{row.get('title') or ''} {row.get('text') or ''}".split())
            rows += 1
            if READ < packed.tell() < size:
                break
        share = packed.tell() / size
    return max(1, round(rows / share)), max(1, round(words / max(rows, 1)))


def _queries(path: Path) -> int:
    """How many queries a file of judgments asks; the lines of one are together."""
    queries, last = 0, b""
    with path.open("rb") as file:
        for line in file:
            name = line.split(None, 1)[0] if line.strip() else last
            queries, last = queries + (name != last), name
    return max(1, queries - 1)  # the header counts as one


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text()) if path.is_file() else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}

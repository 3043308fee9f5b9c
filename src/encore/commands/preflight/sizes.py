"""How large collections are: counted once they are made, else published, stated in ``sizes.yaml``, or assumed."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from encore.config.datasets import CollectionFields, KnownSize
from encore.config.validation import Positive, Strict, checked, read_yaml
from encore.plan.artifact import Artifact
from encore.plan.artifacts.collections import named_collection
from encore.plan.plan import Plan
from encore.stages.needs import CollectionSize, Texts
from encore.stages.tokens import Tokens
from encore.storage.program_files import CATALOGUE

SIZES = CATALOGUE / "sizes.yaml"
PIECES = 1.3  # word pieces of an English word
UNKNOWN = {"passages": 1_000_000, "words": 80, "query_words": 7}  # if nothing is known


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
        if collection := made.inputs.get("collection") or made.spec.get("collection"):
            return self.of(collection)
        through = made.inputs.get("tokens", made.inputs.get("shard0"))
        return self.behind(through) if through else None

    def _size(self, name: str) -> CollectionSize:
        dataset = self.dataset(name)
        fields: CollectionFields = self.plan.resolve.own(dataset).fields
        base = None  # the size as it follows from the dataset that it is derived from, or whose queries it has
        if name_of_base := fields.made_from.base or fields.queries_of:
            found = self.of(named_collection(self.plan, name_of_base))
            follows = fields.derived_size(_known(found))
            base = _counting(found, follows) if follows else None
        size = _estimated(fields, self.stated.get(dataset, Stated(source="")), base)
        tokens = [made for made in self.plan.made.values() if made.stage == "tokens" and Path(made.manifest).is_file()]
        stores = [made.manifest for made in tokens if made.typed(Tokens).collection == name]
        # They are not made yet, or damaged, which an audit reports.
        with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            _count(size, json.loads(Path("results/collections", name, "statistics.json").read_text()))
            for store in stores[:1]:  # of whatever vocabulary
                _measure(size, json.loads(Path(store).read_text())["results"])
        return size


def _known(size: CollectionSize) -> KnownSize:
    """The counts of a size."""
    articles, sections = (texts.count if texts else None for texts in (size.articles, size.sections))
    return KnownSize(size.passages.count, articles=articles, sections=sections, queries=size.queries)


def _counting(size: CollectionSize, known: KnownSize) -> CollectionSize:
    """A size of texts as long as these, of other counts."""

    def of(texts: Texts, count: float | None) -> Texts:
        return texts if count is None else Texts(count, texts.mean)

    return replace(
        size,
        passages=of(size.passages, known.passages),
        sections=of(size.sections, known.sections) if size.sections else None,
        articles=of(size.articles, known.articles) if size.articles else None,
        queries=dict(known.queries),
        notes=list(size.notes),
        assumed=list(size.assumed),
    )


def _estimated(fields: CollectionFields, stated: Stated, base: CollectionSize | None) -> CollectionSize:
    """What the kind knows, is stated, follows from the base, or is assumed, in this order."""
    known = fields.known_size()
    texts, words = known.passages or stated.passages, known.words or stated.words
    sections = known.sections or stated.sections
    size = base or _unknown(bool(texts or sections), bool(words or stated.section_words))
    size.passages = Texts(texts or size.passages.count, words * PIECES if words else size.passages.mean)
    if sections:
        size.sections = Texts(sections, (stated.section_words or words or UNKNOWN["words"]) * PIECES)
    if query_words := known.query_words or stated.query_words:
        size.query_tokens = query_words * PIECES
    size.queries |= {split: float(n) for split, n in {**stated.queries, **known.queries}.items()}
    if (articles := known.articles or stated.articles) and size.sections:
        size.articles = Texts(articles, size.sections.tokens / articles)
    if fields.only_articles:
        size.sections = size.sections or size.passages
        size.passages = Texts(0.0, size.passages.mean)
    return size


def _unknown(has_texts: bool, has_words: bool) -> CollectionSize:
    """What is assumed of a collection of which nothing is known, with what was missing."""
    passages, words = UNKNOWN["passages"], UNKNOWN["words"]
    assumed = [] if has_texts else [f"passages unknown, {passages:,} assumed"]
    notes = [] if has_words else [f"length of passages unknown, {words} words assumed"]
    tokens = UNKNOWN["query_words"] * PIECES
    return CollectionSize(Texts(passages, words * PIECES), query_tokens=tokens, notes=notes, assumed=assumed)


def _count(size: CollectionSize, counted: dict[str, Any]) -> None:
    """Take the counts of a finished collection."""
    size.passages, size.notes, size.assumed = Texts(counted["passages"], size.passages.mean), [], []
    size.queries |= {split: float(each["queries"]) for split, each in counted.get("splits", {}).items()}
    if counted.get("sections") and size.sections is None:
        words = counted.get("sentences", counted["sections"]) * 20 / counted["sections"]
        size.sections = Texts(counted["sections"], words * PIECES)
        size.articles = Texts(counted["articles"], size.sections.tokens / counted["articles"])


def _measure(size: CollectionSize, counted: dict[str, Any]) -> None:
    """Take the lengths of texts from the counts of finished tokens."""
    size.notes = []
    if size.passages.count:
        size.passages = Texts(size.passages.count, counted["tokens_in_passages"] / size.passages.count)
    if counted["sections"]:
        tokens = counted["tokens_in_sentences"]
        size.sections = Texts(counted["sections"], tokens / counted["sections"])
        size.articles = Texts(counted["articles"], tokens / counted["articles"])

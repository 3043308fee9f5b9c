"""A part of another collection, small enough for one GPU: some of its training queries, some of its texts.

What is kept is chosen by a hash of ids, so it is the same on every machine, and a larger part contains a smaller one.
No document is left out that is judged for a query that stays, so judgments stay whole; what gets easier is the search,
since there are fewer documents to confuse the right one with. Texts are streamed, twice; of them only ids are held.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from encore.config.datasets import CollectionFields, CollectionSpec, KnownSize, Split, role_of
from encore.config.validation import Positive
from encore.data.articles import write_article_collection
from encore.data.collection import Collection, judgments_of, smallest, write_collection
from encore.data.text_fields import Form
from encore.datasets.kinds import BuildInputs, Kind
from encore.errors import EncoreError

Qrels = dict[str, dict[str, int]]  # grades by document, by query

SALT = "subset-1"  # hashed with an id to choose it


class SubsetFields(CollectionFields):
    """An entry of the catalogue with ``kind: subset``."""

    of: str = Field(description="the collection that this is a part of")
    passages: Positive | None = Field(
        None, description="documents that stay, judged ones among them; all of them, or all of `articles`, without"
    )
    train_queries: Positive | None = Field(None, description="queries that stay of a split that trains; all without")
    articles: Positive | None = Field(
        None, description="articles that stay, with the links between them, to pre-train on; all without"
    )
    splits: dict[str, Split] = Field({}, description="the splits that are kept, by their names there; all without")

    @model_validator(mode="after")
    def _take_articles_or_passages(self) -> "SubsetFields":
        if self.articles and (self.passages or self.splits):
            raise ValueError("`articles` chooses whole articles, without queries; leave out `passages` and `splits`")
        return self

    @property
    def only_articles(self) -> bool:
        """True if whole articles are chosen: they have no queries."""
        return self.articles is not None

    def inheriting(self, base: CollectionFields) -> "SubsetFields":
        """Fields with what is not given taken from the whole: flags, splits and their measures, and how much is read.

        What answers judge is left out, since a part of the passages would lose right ones.
        """
        if self.articles or self.splits:
            return self.with_flags_of(base)
        answered = {name for name, split in base.splits.items() if split.judged_by == "answers"}
        kept = {"role", "topics", "measures"}
        splits = {
            name: Split.model_validate(split.model_dump(include=kept))
            for name, split in base.splits.items()
            if name not in answered and split.topics not in answered
        }
        gone = dict.fromkeys(base.splits.keys() - splits.keys(), "a part of the passages lacks right ones")
        given = {
            "splits": splits,
            "absent": {**base.absent, **gone, **self.absent},
            "length": self.length or base.length,
        }
        return self.model_copy(update=given).with_flags_of(base)

    def derived_size(self, base: KnownSize) -> KnownSize:
        """The share of the whole that stays."""
        share = self.articles / base.articles if self.articles and base.articles else 1.0
        share = min(1.0, self.passages / max(base.passages or 0.0, 1.0) if self.passages else share)
        kept = {name: count * share for name in ("passages", "articles", "sections") if (count := getattr(base, name))}
        most = float(self.train_queries or "inf")
        queries = {name: min(n, most) if role_of(name) == "train" else n for name, n in base.queries.items()}
        return replace(base, **kept, queries=queries)

    def resolve(self) -> dict[str, Any]:
        """The content's identity, besides the collection that it is derived from."""
        if self.articles:
            return {"kind": self.kind, "articles": self.articles, "salt": SALT}
        chosen = {name: getattr(self, name) for name in ("passages", "train_queries", "articles")}
        return {"kind": self.kind, **chosen, "salt": SALT, "splits": sorted(self.splits)}


class SubsetSpec(CollectionSpec):
    """The same fields, resolved."""

    passages: int | None = None
    train_queries: int | None = None
    articles: int | None = None
    salt: str
    splits: list[str] = []


def build_subset(spec: SubsetSpec, folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the part of another collection that ``spec``, resolved ``SubsetFields``, describes; returns its counts."""
    base = inputs.needed_base()
    if spec.articles:
        pages = {*_some((row["_id"] for row in base.articles()), spec.articles, spec.salt, "articles")}
        kept = (row for row in base.articles() if row["_id"] in pages)
        linked = ({**row, "links": [link for link in row["links"] if link["to"] in pages]} for row in kept)
        return write_article_collection(folder, linked, {})
    questions = {split: base.query_ids(split) for split in spec.splits if not base.is_judged(split)}
    qrels = {split: _chosen_queries(base.qrels(split), split, spec) for split in spec.splits if split not in questions}
    query_ids = {query for queries in (*qrels.values(), *questions.values()) for query in queries}
    documents = _documents(base, qrels, spec)
    return write_collection(
        folder,
        (row for row in base.corpus() if row["_id"] in documents),
        (row for row in base.query_rows() if row["_id"] in query_ids),
        {split: judgments_of(judged) for split, judged in qrels.items()},
        base.articles(),
        form=Form.read(base.folder),
        answers=(row for row in base.answer_rows() if row["_id"] in query_ids),
        questions=questions,
    )


def _chosen_queries(judged: Qrels, split: str, spec: SubsetSpec) -> Qrels:
    """The queries of a split that stay, with their judgments: all, but of one that trains."""
    if role_of(split) != "train" or spec.train_queries is None:
        return judged
    chosen = set(_some(judged, spec.train_queries, spec.salt, f"queries of split {split!r}"))
    return {query: grades for query, grades in judged.items() if query in chosen}


def _documents(base: Collection, qrels: Mapping[str, Qrels], spec: SubsetSpec) -> set[str]:
    names = (row["_id"] for row in base.corpus())
    if spec.passages is None:
        return set(names)
    if base.has_articles():
        raise EncoreError(f"{base.folder} has articles, which `passages` would cut up; choose whole `articles`")
    judged = {document for split in qrels.values() for grades in split.values() for document in grades}
    if len(judged) > spec.passages:
        raise EncoreError(f"{len(judged)} documents are judged, and only {spec.passages} may stay; raise `passages`")
    others = (name for name in names if name not in judged)
    return judged | set(_some(others, spec.passages - len(judged), spec.salt, "documents besides the judged ones"))


def _some(ids: Iterable[str], count: int, salt: str, what: str) -> list[str]:
    chosen = smallest(ids, count, salt)
    if len(chosen) < count:
        raise EncoreError(f"there are {len(chosen)} {what}, and {count} are to stay; lower the number")
    return chosen


KIND = Kind(SubsetFields, SubsetSpec, build_subset)

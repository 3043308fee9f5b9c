"""What the configuration says about every collection, and what planning asks of every kind of collection.

A kind of collection (``datasets/``) overrides what differs from the defaults here; nothing else knows one kind from
another.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from encore.config.languages import ENGLISH, RULES, language_code
from encore.config.validation import DATASET, Positive, Strict, nearest
from encore.errors import EncoreError, quoted

_OF_THE_RETRIEVED = re.compile(r"(Success|RR|P)@\d+")
DATA_ROOT = "{data_root}"  # at the beginning of a path: the folder of `execution: data_root:`
Role = Literal["train", "valid", "test", "graded"]


def role_of(split: str) -> str:
    """``train-80-s1`` -> ``train``: what a split is used for, when its name says so."""
    return split.partition("-")[0]


def is_reported(split: str) -> bool:
    """True if a split's queries are reported, and do not train or choose a model."""
    return role_of(split) not in ("train", "valid")


def draw_of(split: str) -> str | None:
    """``train-80-s1`` -> ``80-s1``: which of several ways to split the queries it belongs to; None for one way.

    A second measure's judgments of the same queries are named behind a full stop, ``test-80.sentence``.
    """
    name, dash, draw = split.partition(".")[0].partition("-")
    return draw if dash and name in ("train", "valid", "test", "graded") else None


def serves(split: str, other: str) -> bool:
    """True if a split that trains or chooses a model may do so for another: it is of that one's draw, or of none."""
    return draw_of(split) in (None, draw_of(other))


def same_draw(one: str, other: str) -> bool:
    """True if two splits go together, so that what trains in one must not be tested in the other.

    ``train-1`` goes with ``valid-1`` and ``test-1`` and has nothing to do with ``test-80``, whose model is another one.
    A split without a draw goes with all.
    """
    return serves(one, other) or serves(other, one)


class Split(Strict):
    """One set of judgments, and what is measured on it."""

    role: Role = Field(description="train; valid chooses; test and graded are reported")
    topics: str | None = Field(None, description="the split whose queries (and runs) it shares; its own without")
    file: str | None = Field(None, description="judgments in the source's folder; `qrels/<split>.tsv` without")
    judged_by: Literal["judgments", "answers"] = Field(
        "judgments", description="`answers`: a retrieved passage is right if its text has an answer to the question"
    )
    measures: dict[str, str] = Field({}, description="printed name: measure as ir-measures writes it")

    @field_validator("measures")
    @classmethod
    def _know_each_measure(cls, measures: dict[str, str]) -> dict[str, str]:
        for name, expression in measures.items():
            try:
                measure = parse_measure(expression)
            except EncoreError as error:
                raise ValueError(f"{name!r}: {error}") from error
            if name.rpartition("@")[2].isdecimal() and int(name.rpartition("@")[2]) != measure.cutoff:
                raise ValueError(f"{name!r} would be shown for {expression}, which counts to another rank; correct one")
        return measures

    @model_validator(mode="after")
    def _measure_what_answers_tell(self) -> "Split":
        """How many passages of a collection have an answer is unknown, so nothing can be divided by it."""
        wrong = [measure for measure in self.measures.values() if not _OF_THE_RETRIEVED.fullmatch(measure)]
        if self.judged_by == "answers" and wrong:
            raise ValueError(f"{wrong[0]!r} cannot be measured by answers; Success@k, RR@k and P@k can")
        if self.judged_by == "answers" and self.role in ("train", "valid"):
            raise ValueError(f"role {self.role} needs judgments; what answers judge is reported")
        return self


@dataclass(frozen=True)
class MadeFrom:
    """What a collection is built from.

    Args:
        path: the user's file or folder.
        base: the dataset that it is derived from.
        parts: the datasets that are joined into it.
        sources: entries of ``sources.yaml``.
        ids: what ir_datasets downloads, by its names.
    """

    path: str | None = None
    base: str | None = None
    parts: Sequence[str] = ()
    sources: Sequence[str] = ()
    ids: Sequence[str] = ()


@dataclass(frozen=True)
class KnownSize:
    """What is known of a collection before it is built; None, and splits left out, where nothing is.

    Args:
        passages: how many.
        words: mean words of a passage.
        articles: how many.
        sections: of all articles.
        queries: how many, by split.
        query_words: mean words of a query.
    """

    passages: float | None = None
    words: float | None = None
    articles: float | None = None
    sections: float | None = None
    queries: Mapping[str, float] = field(default_factory=dict)
    query_words: float | None = None

    @classmethod
    def published(cls, expected: Mapping[str, int]) -> "KnownSize":
        """The counts of an entry's ``expected``: ``passages`` and ``queries.<split>``."""
        queries = {key.removeprefix("queries."): n for key, n in expected.items() if key.startswith("queries.")}
        return cls(expected.get("passages"), queries=queries)

    def holding_out(self, count: int | None) -> "KnownSize":
        """The same with so many queries of ``train`` as ``valid``."""
        if not count or "train" not in self.queries:
            return self
        return replace(self, queries={**self.queries, "train": self.queries["train"] - count, "valid": count})


class CollectionFields(Strict):
    """Fields that every kind of collection has, and what planning asks of each kind."""

    only_passages: ClassVar[bool] = False  # no articles with sections and links, which some objectives read

    kind: str = Field(description="how it is built, and what else an entry has: one of docs/collections.md")
    splits: Mapping[str, Split] = Field(description="the splits that are used, by name")
    length: Positive | None = Field(
        None, exclude=True, description="tokens that models read of each text at least, whatever they trained with"
    )
    zero_shot: bool = Field(
        False,
        exclude=True,
        description="only models that learned from no query of it, or of its sources, are tested on it, and "
        "only where a table asks for it",
    )
    queries_of: str | None = Field(
        None,
        exclude=True,
        description="the dataset that its queries are taken from or built from: what learned from one is not tested "
        "zero-shot on the other",
    )
    apart_from: tuple[str, ...] = Field(
        (), exclude=True, description="datasets that it shares no query with, though both are of one"
    )
    language: str = Field(
        ENGLISH,
        exclude=True,
        description="of its texts, by a code of ISO 639: it decides BM25's analyser, where sentences end, and which "
        "characters a trained vocabulary keeps; a derived dataset has that of its base",
    )
    ignore_identical_ids: bool = Field(
        False, exclude=True, description="ignore a retrieved document with the query's own id, as BEIR's scores do"
    )
    ignore_copies: bool = Field(
        False,
        exclude=True,
        description="no passage with the text of a relevant one is a negative, nor what is relevant for a query of "
        "equal text; released codes know no copies",
    )
    absent: dict[str, str] = Field(
        {}, description="splits that tables may name and this collection cannot have, with the reason"
    )
    note: str | None = Field(
        None, exclude=True, description="a sentence for tables that use it, e.g. which withdrawn dataset it replaces"
    )
    access: str = Field(
        "", exclude=True, description="how to get files that no rule fetches; shown where they are missing"
    )
    licence: str = Field("", exclude=True, description="in a few words")
    terms: str = Field("", exclude=True, description="the address of the page that offers it and has its terms")
    source: str = Field("", exclude=True, description="where these values come from; part of no digest")

    @field_validator("language", mode="before")
    @classmethod
    def _know_the_language(cls, language: Any) -> Any:
        language = "no" if language is False else language  # as YAML reads it
        try:
            return language_code(language) if isinstance(language, str) else language
        except EncoreError as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _check_the_splits(self) -> "CollectionFields":
        for name, split in self.splits.items():
            if not DATASET.fullmatch(name):
                raise ValueError(
                    f"{quoted(name)} cannot be the name of a split, which files have; begin with a letter or digit, "
                    "and go on with these, _, . and -, 80 characters at most"
                )
            if split.topics is not None and split.topics not in self.splits:
                raise ValueError(f"splits.{name}.topics: no split {split.topics!r}{nearest(split.topics, self.splits)}")
            if split.role in ("train", "valid") and role_of(name) != split.role:
                raise ValueError(
                    f"the split {name!r} must be called by its role, {split.role!r}, with a draw behind a dash where "
                    "there are several; its `file` may be any"
                )
        return self

    @property
    def made_from(self) -> MadeFrom:
        """What its job reads: by default its ``path`` and what it is derived ``of``, where its kind has such fields."""
        return MadeFrom(path=getattr(self, "path", None), base=getattr(self, "of", None))

    @property
    def embedded(self) -> bool:
        """True if it is shipped with Encore: nothing has to be obtained."""
        return False

    @property
    def only_articles(self) -> bool:
        """True if it has articles to pre-train on, and neither passages nor queries."""
        return False

    @property
    def listed_negatives_used(self) -> Literal["never", "if asked", "always"]:
        """The steps in which negatives that its training queries list take the place of BM25's."""
        return "never"

    @property
    def takes_articles(self) -> bool:
        """True if it can be derived from a collection that has articles only."""
        return self.only_articles

    @property
    def questions_identity(self) -> dict[str, Any] | None:
        """What decides its queries, if datasets of other names can have the same ones."""
        return None

    @property
    def missing(self) -> str | None:
        """What to do about files that the user has to put in place, or None if they are there."""
        path = self.made_from.path
        if path is None or Path(path).exists():
            return None
        return f"{path} is missing, which cannot be downloaded: {self.access or 'put it there, or name another `path`'}"

    def placed(self, data_root: str) -> Self:
        """These fields with the run's data folder in place of ``{data_root}`` at the beginning of the path."""
        path = self.made_from.path
        if path is None or not path.startswith(DATA_ROOT):
            return self
        return self.model_copy(update={"path": data_root + path.removeprefix(DATA_ROOT)})

    def inheriting(self, base: "CollectionFields") -> Self:
        """These fields with what they leave out taken from the dataset that it is derived from."""
        return self

    def with_flags_of(self, base: "CollectionFields") -> Self:
        """These fields with what is scored and drawn as a negative as for a dataset that has the same queries."""
        unsaid = {"ignore_identical_ids", "ignore_copies", "zero_shot"} - self.model_fields_set
        return self.model_copy(update={name: getattr(base, name) for name in unsaid})

    def serves(self, split: str, other: str) -> bool:
        """True if what trains or chooses by a split may be measured on another: they are of one draw, or it of none."""
        return serves(split, other)

    def check_files(self) -> None:
        """Check in seconds, before any job, what can be known of the user's files."""

    def known_size(self) -> KnownSize:
        """What is published of its size, or can be counted in its files within seconds."""
        return KnownSize()

    def derived_size(self, base: KnownSize) -> KnownSize | None:
        """Its size as it follows from that of the dataset that it is derived from, or whose queries it has, or None."""
        return base

    @property
    def language_spec(self) -> dict[str, Any]:
        """Its language's part of a collection's spec: nothing for English, so folders keep their names."""
        return {} if self.language == ENGLISH else {"language": self.language, "rules": RULES}

    def resolve(self) -> dict[str, Any]:
        """All that decides the collection's content but its language: the spec that its digest is taken of.

        Measures do not.
        """
        raise NotImplementedError


class Ignored(Strict):
    """Which unjudged documents are no negatives of a query; the fields are those of its dataset."""

    ignore_identical_ids: bool = False
    ignore_copies: bool = False


class CollectionSpec(BaseModel):
    """What ``CollectionFields.resolve`` returned, as the kind's ``build`` reads it: each kind adds its own fields.

    What only identifies, such as the version of a rule, needs no field.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    language: str = ENGLISH
    content: dict[str, str] = {}  # digests of the user's own files that are read, by name


NAMES = ("RR", "R", "nDCG", "AP", "P", "Success")
NEEDS_CUTOFF = frozenset({"R", "P", "Success"})
ALIASES = {"mrr": "RR", "recall": "R", "map": "AP", "precision": "P", **{name.lower(): name for name in NAMES}}

_EXPRESSION = re.compile(r"(?P<name>[A-Za-z]+)(?:\(rel=(?P<rel>[1-9]\d*)\))?(?:@(?P<cutoff>[1-9]\d*))?")


@dataclass(frozen=True)
class Measure:
    """A measure, the lowest grade that counts as relevant, and the number of ranks looked at (None: all).

    It is written as ir-measures spells it: ``RR@10``, ``R(rel=3)@100``, ``nDCG@10``.
    """

    name: str
    rel: int = 1
    cutoff: int | None = None

    def __str__(self) -> str:
        threshold = f"(rel={self.rel})" if self.rel != 1 else ""
        return f"{self.name}{threshold}" + (f"@{self.cutoff}" if self.cutoff else "")


def parse_measure(expression: str) -> Measure:
    """The measure that an expression names, in ir-measures' spelling: ``R(rel=3)@100``."""
    match = _EXPRESSION.fullmatch(expression)
    if not match:
        raise EncoreError(f"measure {expression!r} is unknown; write one of {', '.join(NAMES)}, as in R(rel=2)@100")
    if match["name"].lower() not in ALIASES:
        raise EncoreError(f"measure {expression!r} is unknown{nearest(match['name'], NAMES)}")
    measure = Measure(
        ALIASES[match["name"].lower()], int(match["rel"] or 1), int(match["cutoff"]) if match["cutoff"] else None
    )
    if measure.name in NEEDS_CUTOFF and measure.cutoff is None:
        raise EncoreError(f"measure {expression!r} needs a number of ranks, as in {measure}@10")
    if measure.name == "nDCG" and measure.rel != 1:
        raise EncoreError(f"measure {expression!r}: nDCG takes the grades as gains and has no threshold; leave rel out")
    if str(measure) != expression.replace("(rel=1)", ""):  # which may be written out
        raise EncoreError(f"measure {expression!r} is spelt {str(measure)!r} here")
    return measure

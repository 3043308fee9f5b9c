"""What the configuration says about every collection, whatever its source: its splits and their roles."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from encore.config.measures import parse_measure
from encore.config.strict import Positive, Strict
from encore.errors import EncoreError

_OF_THE_RETRIEVED = re.compile(r"(Success|RR|P)@\d+")
Role = Literal["train", "valid", "test", "graded"]


def role_of(split: str) -> str:
    """``train-80-s1`` -> ``train``: what a split is used for, when its name says so."""
    return split.partition("-")[0]


def is_reported(split: str) -> bool:
    """Whether a split's queries are reported, and do not train or choose a model."""
    return role_of(split) not in ("train", "valid")


def draw_of(split: str) -> str | None:
    """``train-80-s1`` -> ``80-s1``: which of several ways to part the queries a split belongs to; None with one way.

    A second measure's judgments of the same queries are named behind a full stop, ``test-80.sentence``.
    """
    name, dash, draw = split.partition(".")[0].partition("-")
    return draw if dash and name in ("train", "valid", "test", "graded") else None


def serves(split: str, other: str) -> bool:
    """Whether a split, which trains or chooses a model, may do so for another: it is of that one's draw, or of none."""
    return draw_of(split) in (None, draw_of(other))


def same_draw(one: str, other: str) -> bool:
    """Whether two splits go together, so that what trains in one must not be tested in the other.

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
                parse_measure(expression)
            except EncoreError as error:
                raise ValueError(f"{name!r}: {error}") from error
        return measures

    @model_validator(mode="after")
    def _measure_what_answers_tell(self) -> "Split":
        """Nobody knows how many passages of a collection have an answer, so nothing can be divided by it."""
        wrong = [measure for measure in self.measures.values() if not _OF_THE_RETRIEVED.fullmatch(measure)]
        if self.judged_by == "answers" and wrong:
            raise ValueError(f"{wrong[0]!r} cannot be measured by answers; Success@k, RR@k and P@k can")
        if self.judged_by == "answers" and self.role in ("train", "valid"):
            raise ValueError(f"role {self.role} needs judgments; what answers judge is reported")
        return self


class CollectionFields(Strict):
    """Fields that every kind of collection has."""

    only_passages: ClassVar[bool] = False  # no articles with sections and links, which some objectives read

    splits: Mapping[str, Split] = Field(description="the splits that are used, by name")
    length: Positive | None = Field(
        None, exclude=True, description="tokens that models read of each text at least, whatever they trained with"
    )
    zero_shot: bool = Field(
        False,
        exclude=True,
        description="only models that learned from no query of it, or of what it is made of, are tested on it, and "
        "only where a table asks for it",
    )
    ignore_identical_ids: bool = Field(
        False, exclude=True, description="a document that has the query's own id is no answer to it: BEIR scores so"
    )
    absent: dict[str, str] = Field(
        {}, description="splits that tables may name and this collection cannot have, with the reason"
    )
    note: str | None = Field(
        None, exclude=True, description="a sentence for tables that use it, e.g. which withdrawn dataset it replaces"
    )

    @property
    def only_articles(self) -> bool:
        """Whether it is only pre-trained on: it has articles, and neither passages nor queries."""
        return False

    @model_validator(mode="after")
    def _call_what_training_uses_by_its_role(self) -> "CollectionFields":
        for name, split in self.splits.items():
            if split.role in ("train", "valid") and role_of(name) != split.role:
                raise ValueError(
                    f"the split {name!r} must be called by its role, {split.role!r}, with a draw behind a dash where "
                    "there are several; its `file` may be any"
                )
        return self

    def is_apart_from(self, other: "CollectionFields") -> bool:
        """Whether two collections that are made of one cannot share a query."""
        return False

    def resolve(self) -> dict[str, Any]:
        """All that decides the collection's content: the spec that its digest is taken of. Measures do not."""
        raise NotImplementedError

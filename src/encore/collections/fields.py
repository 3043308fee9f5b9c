"""What the configuration says about every collection, whatever its source: its splits and their roles."""

from typing import Any, Literal

from pydantic import Field, model_validator

from encore.config import Strict

Role = Literal["train", "valid", "test", "graded"]


class Split(Strict):
    """One set of judgments, and what is measured on it."""

    role: Role = Field(description="train; valid chooses; test and graded are reported")
    topics: str | None = Field(None, description="the split whose queries (and runs) it shares; its own without")
    file: str | None = Field(None, description="judgments in the source's folder; `qrels/<split>.tsv` without")
    measures: dict[str, str] = Field({}, description="printed name: measure as ir-measures writes it")


class CollectionFields(Strict):
    """Fields that every kind of collection has."""

    splits: dict[str, Split] = Field(description="the splits that are used, by name")

    absent: dict[str, str] = Field(
        {}, description="splits that tables may name and this collection cannot have, with the reason"
    )

    @model_validator(mode="after")
    def _call_what_training_uses_by_its_role(self) -> "CollectionFields":
        for name, split in self.splits.items():
            if split.role in ("train", "valid") and name != split.role:
                raise ValueError(
                    f"the split {name!r} must be called by its role, {split.role!r}; its `file` may be any"
                )
        return self

    def resolve(self) -> dict[str, Any]:
        """All that decides the collection's content: the spec that its digest is taken of. Measures do not."""
        raise NotImplementedError

"""What the configuration says about questions and passages in DPR's form."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from encore.config.datasets import CollectionFields, Split
from encore.datasets import source_files

COUNTED = ("queries", "judgments", "negatives")


class DprSplit(Split):
    """Questions of one file: with passages (a JSON array) to train on, or with answers alone (``.csv``) for a test."""

    file: str = Field(description="`source:file`, or a file in the dataset's `path`")

    @property
    def with_passages(self) -> bool:
        """Whether the file lists passages for each question, so that the split has judgments."""
        return self.judged_by == "judgments"


class DprFields(CollectionFields):
    """An entry of the catalogue with ``kind: dpr``."""

    only_passages: ClassVar[bool] = True

    kind: Literal["dpr"]
    path: str | None = Field(None, exclude=True, description="the folder of files of one's own")
    passages: str = Field(description="the file of passages: `source:file`, or a file in `path`")
    splits: Mapping[str, DprSplit] = Field(description="the splits that are used, by name")
    expected: dict[str, int] = Field(
        {}, description="`passages`, `queries.<split>`, `judgments.<split>`, … as published; other counts are refused"
    )
    licence: str = Field("", exclude=True, description="in a few words")
    terms: str = Field("", exclude=True, description="the address of the page where it is offered")
    source: str = Field("", exclude=True, description="where these values come from; no part of any digest")

    @model_validator(mode="after")
    def _expect_what_is_counted(self) -> "DprFields":
        counted = {"passages", *(f"{what}.{split}" for what in COUNTED for split in self.splits)}
        if strange := sorted(set(self.expected) - counted):
            known = ", ".join(sorted(counted))
            raise ValueError(f"expected has {strange[0]!r}, which is not counted; known are {known}")
        return self

    @property
    def lists_negatives(self) -> bool:
        """Whether its training questions bring negatives."""
        return True

    def files(self) -> list[str]:
        """Every file that is read, by its place."""
        return list(dict.fromkeys([self.passages, *(split.file for split in self.splits.values())]))

    def sources(self) -> list[str]:
        """The entries of ``sources.yaml`` that it is made of."""
        return source_files.sources(self.files())

    def resolve(self) -> dict[str, Any]:
        """All that decides the content."""
        return {
            "kind": self.kind,
            "passages": self.passages,
            "splits": {
                name: {"file": split.file, "with_passages": split.with_passages} for name, split in self.splits.items()
            },
            "expected": self.expected,
            **source_files.identity(self.files(), self.path),
        }

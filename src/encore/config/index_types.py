"""Indexes that a model's vectors can be searched in besides the exact one: the kinds of entries in ``indexes.yaml``.

A system named ``<lineage>@<entry>`` is searched in one; recall against exact search is part of every such run. What
decides the search alone (``SEARCH``) is not part of an index's identity, so that one index serves several settings.
"""

from functools import partial
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from encore.config.strict import Positive, Strict
from encore.config.validation import by_kind
from encore.errors import EncoreError


class IndexType(Strict):
    """Fields of every entry."""

    SEARCH: ClassVar[frozenset[str]] = frozenset()

    kind: str
    source: str = Field("", exclude=True, description="where these values come from; no part of any digest")

    def building(self) -> dict[str, Any]:
        """The fields that decide the index's bytes, as specs say them."""
        return {key: value for key, value in self.model_dump(mode="json").items() if key not in self.SEARCH}

    def searching(self) -> dict[str, Any]:
        """The fields that decide how it is searched."""
        return {key: value for key, value in self.model_dump(mode="json").items() if key in self.SEARCH}

    def check(self, dimension: int) -> None:
        """Refuse vectors of a dimension that the type cannot hold, by an EncoreError."""


class Hnsw(IndexType):
    """A navigable small-world graph over whole vectors (Malkov and Yashunin, 2018)."""

    SEARCH = frozenset({"ef_search"})

    kind: Literal["hnsw"]
    m: int = Field(32, ge=2, description="neighbours of a vector in each layer; twice as many in the lowest")
    ef_construction: Positive = Field(200, description="candidates looked at for a new vector")
    ef_search: Positive = Field(256, description="candidates looked at for a query, at least as many as are asked for")


class IvfPq(IndexType):
    """Inverted lists around k-means centroids, with product-quantised residuals (Jegou et al., 2011)."""

    SEARCH = frozenset({"nprobe"})

    kind: Literal["ivfpq"]
    nlist: Positive = Field(4096, description="lists")
    m: Positive = Field(96, description="parts of a vector, each with its own code; divides the dimension")
    bits: int = Field(8, ge=4, le=12, description="of a part's code")
    nprobe: Positive = Field(1, description="lists that a query looks into")
    seed: int = Field(0, ge=0, description="of k-means")

    @model_validator(mode="after")
    def _look_into_lists_that_there_are(self) -> "IvfPq":
        if self.nprobe > self.nlist:
            raise ValueError(f"nprobe {self.nprobe} is more than the nlist {self.nlist} lists there are")
        return self

    def check(self, dimension: int) -> None:
        """Refuse parts of unequal size: ``m`` must divide the dimension."""
        if dimension % self.m:
            raise EncoreError(
                f"index type ivfpq: m={self.m} does not divide the {dimension} dimensions of the vectors; "
                "choose a divisor, under `scale: indexes:` or in the name"
            )


class Fp16(IndexType):
    """Whole vectors in half precision, all of them compared; half the bytes of exact search."""

    kind: Literal["fp16"]


KINDS: dict[str, type[IndexType]] = {"hnsw": Hnsw, "ivfpq": IvfPq, "fp16": Fp16}
read_index_type = partial(by_kind, kinds=KINDS, what="index")  # checks an entry's fields

"""Some packages of pydocs, as a collection of their own: search in a field that the model was never taught to search.

They stand for BEIR, where a model that learned from MS MARCO's queries meets other collections. Here it learns from the
standard library's queries, and each package is a set: all its passages, and its queries of pydocs' test. These are in
no text that anything is trained on (``pydocs``), and of another package than every query that the model learned from.

The judgments are known-item: an object's own passage, grade 1.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from encore.config.datasets import CollectionFields, MadeFrom
from encore.data.collection import Judgment, write_collection
from encore.datasets.kinds import BuildInputs, Kind
from encore.datasets.pydocs.derived import QUERY, PydocsObject, objects
from encore.errors import EncoreError

STANDARD_LIBRARY = "python"
ROLES = ("train", "valid", "test")


class PackagesFields(CollectionFields):
    """An entry of the catalogue with ``kind: pydocs-packages``."""

    embedded: ClassVar[bool] = True

    kind: Literal["pydocs-packages"]
    of: str = Field(description="the pydocs whose objects these are")
    packages: list[str] = Field(
        min_length=1, description="import names of the packages; `python` is the standard library"
    )

    @model_validator(mode="after")
    def _take_splits_that_pydocs_has(self) -> "PackagesFields":
        if strange := sorted(set(self.splits) - set(ROLES)):
            raise ValueError(f"splits has {strange[0]!r}; pydocs' queries by package are {', '.join(ROLES)}")
        return self

    @property
    def made_from(self) -> MadeFrom:
        """The collection of docstrings."""
        return MadeFrom(base=self.of)

    def resolve(self) -> dict[str, Any]:
        """The content's identity, in addition to the collection that it is made of."""
        return {"kind": self.kind, "packages": sorted(self.packages), "splits": sorted(self.splits)}

    def is_apart_from(self, other: CollectionFields) -> bool:
        """Whether no query can be in both: parts of one collection without a common package."""
        return (
            isinstance(other, PackagesFields) and other.of == self.of and not set(self.packages) & set(other.packages)
        )


def build_packages(spec: dict[str, Any], folder: Path, inputs: BuildInputs) -> dict[str, Any]:
    """Write the objects of a pydocs that the packages have; returns the counts.

    Raises:
        EncoreError: the collection that it is made of is missing or no pydocs, or a package or a split has nothing
            in it.
    """
    base = inputs.needed_base()
    found = [each for each in objects(base) if package(each) in spec["packages"]]
    if missing := sorted(set(spec["packages"]) - {package(each) for each in found}):
        raise EncoreError(f"{base.folder} has no object of package {missing[0]!r}; name another under `packages`")
    queried = {each.id: each for each in found if each.query and each.role in spec["splits"]}
    for split in spec["splits"]:
        if not any(each.role == split for each in queried.values()):
            raise EncoreError(f"{', '.join(spec['packages'])} of {base.folder} have no query of {split!r}")
    ids = {each.id for each in found}
    return write_collection(
        folder,
        (row for row in base.corpus() if row["_id"] in ids),
        (row for row in base.query_rows() if row["_id"].removeprefix(QUERY) in queried),
        {split: _judgments(queried.values(), split) for split in spec["splits"]},
        statistics={"modules": len({each.module for each in queried.values()})},
    )


def package(each: PydocsObject) -> str:
    """The package that an object is of."""
    return STANDARD_LIBRARY if each.package in sys.stdlib_module_names else each.package


def _judgments(queried: Iterable[PydocsObject], split: str) -> Iterator[Judgment]:
    for each in queried:
        if each.role == split:
            yield Judgment(QUERY + each.id, each.id, 1)


KIND = Kind(PackagesFields, build_packages)

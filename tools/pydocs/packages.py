"""Some packages of pydocs, as a collection each: search in a field that the model was never taught to search.

They replace BEIR's sets, where a model that learned from MS MARCO's queries meets other collections. Here it learns
from the standard library's queries, and each package is a set: all its passages, and its queries of pydocs' test. These
are in no text that anything is trained on, and of another package than every query that the model learned from.

The judgments are known-item: an object's own passage, grade 1.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from encore.data.collection import Collection, Judgment, write_collection
from encore.errors import EncoreError
from tools.pydocs.build import query_id
from tools.pydocs.derived import PydocsObject, objects

STANDARD_LIBRARY = "python"


def write_packages(folder: Path, base: Collection, packages: list[str], splits: list[str]) -> dict[str, Any]:
    """Write the objects of a pydocs that the packages have; returns the counts.

    Raises:
        EncoreError: a package or a split has nothing in it.
    """
    found = [each for each in objects(base) if package(each) in packages]
    if missing := sorted(set(packages) - {package(each) for each in found}):
        raise EncoreError(f"pydocs has no object of package {missing[0]!r}; name another")
    queried = {query_id(each.id): each for each in found if each.query and each.role in splits}
    for split in splits:
        if not any(each.role == split for each in queried.values()):
            raise EncoreError(f"{', '.join(packages)} have no query of {split!r}; name another split or package")
    ids = {each.id for each in found}
    return write_collection(
        folder,
        (row for row in base.corpus() if row["_id"] in ids),
        (row for row in base.query_rows() if row["_id"] in queried),
        {split: _judgments(queried.values(), split) for split in splits},
        statistics={"modules": len({each.module for each in queried.values()})},
    )


def package(each: PydocsObject) -> str:
    """The package that an object is of."""
    return STANDARD_LIBRARY if each.package in sys.stdlib_module_names else each.package


def _judgments(queried: Iterable[PydocsObject], split: str) -> Iterator[Judgment]:
    for each in queried:
        if each.role == split:
            yield Judgment(query_id(each.id), each.id, 1)

"""Negatives that others have listed in a file: the request (``triples.py`` and ``systems_file.py`` read files).

What a file says of queries or documents that the collection does not have is counted and left out; a file that knows
none of them is refused.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

from encore.errors import EncoreError


@dataclass(frozen=True)
class NegativesRequest:
    """The queries that negatives are for, and what is known next to them."""

    queries: AbstractSet[str]
    judgments: Mapping[str, Mapping[str, int]]  # of all training queries, those that are not wanted too
    documents: Collection[str]  # ids, in the corpus' order where texts are looked for
    exclude_judged: bool = True
    excluded: Mapping[str, AbstractSet[str]] = field(default_factory=dict)  # no negatives either, by query

    def left_out(self, query: str) -> AbstractSet[str]:
        """Documents that are not negatives of a query: those that are judged, and those that are excluded."""
        excluded = self.excluded.get(query, frozenset[str]())
        return self.judgments[query].keys() | excluded if self.exclude_judged else excluded


def refuse_foreign_file(path: Path, lines: int, unknown: int) -> None:
    """Refuse a file all of whose lines are about queries and documents that the collection does not have."""
    if unknown == lines:
        raise EncoreError(f"{path}: nothing in it is about queries and documents of this collection; name its own file")

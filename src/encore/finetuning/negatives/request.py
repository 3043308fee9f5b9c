"""Negatives that others have listed in a file: the request (``triples.py`` and ``systems_file.py`` read files).

What a file says of queries or documents that the collection does not have is counted and left out; a file that knows
none of them is refused.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from encore.errors import EncoreError


@dataclass(frozen=True)
class NegativesRequest:
    """The queries that negatives are for, and what is known next to them."""

    queries: AbstractSet[str]
    judgments: Mapping[str, Mapping[str, int]]  # of all training queries, those that are not wanted too
    documents: Collection[str]  # ids, in the corpus' order where texts are looked for
    exclude_judged: bool = True

    def is_judged(self, query: str, document: str) -> bool:
        """True if a document is not a negative because it is judged."""
        return self.exclude_judged and document in self.judgments[query]


def refuse_foreign_file(path: Path, lines: int, unknown: int) -> None:
    """Refuse a file all of whose lines are about queries and documents that the collection does not have."""
    if unknown == lines:
        raise EncoreError(f"{path}: nothing in it is about queries and documents of this collection; name its own file")

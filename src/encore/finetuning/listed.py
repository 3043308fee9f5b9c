"""Negatives that others have listed in a file: triples of MS MARCO's kind, or candidates of several retrieval systems.

What a file says of queries or documents that the collection does not have is counted and left out; a file that knows
none of them is refused.
"""

import json
from collections.abc import Container, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encore.collections.common import smallest
from encore.errors import EncoreError
from encore.finetuning.negatives import Negatives, Statistics, statistics
from encore.storage import numbered_lines

CROWDED = 8  # times as many candidates as are kept: then those that cannot be drawn are forgotten


@dataclass(frozen=True)
class Wanted:
    """The queries that negatives are for, and what is known beside them."""

    queries: AbstractSet[str]
    judgments: Mapping[str, Mapping[str, int]]  # of all training queries, those that are not wanted too
    documents: AbstractSet[str]
    exclude_judged: bool = True

    def is_judged(self, query: str, document: str) -> bool:
        """Whether a document is no negative because it is judged."""
        return self.exclude_judged and document in self.judgments[query]


def from_triples(path: Path, wanted: Wanted, *, keep: int, seed: int) -> tuple[Negatives, Statistics]:
    """Draw at most ``keep`` negatives for each query from lines ``query<TAB>positive<TAB>negative``.

    A draw is the ``keep`` smallest digests of (seed, query, document), as from a run; a file has no ranks, so all are
    0. What the file calls positive is not read: the collection's judgments say it.

    Raises:
        EncoreError: a line is no triple (with its number), or nothing in the file is of this collection.
    """
    found: dict[str, set[str]] = {query: set() for query in wanted.queries}
    judged = unknown = number = 0
    for number, line in numbered_lines(path):
        fields = line.split("\t")
        if len(fields) != 3 or not all(fields):
            raise EncoreError(f"{path}, line {number}: not `query<TAB>positive<TAB>negative`; mend or remove the line")
        query, _, document = fields
        if query not in wanted.judgments or document not in wanted.documents:
            unknown += 1
        elif wanted.is_judged(query, document):
            judged += 1
        elif query in found:
            found[query].add(document)
            if len(found[query]) > CROWDED * keep:
                found[query] = set(smallest(found[query], keep, f"{seed}:{query}"))
    _refuse_strange(path, number, unknown)
    drawn = {query: dict.fromkeys(smallest(found[query], keep, f"{seed}:{query}"), 0) for query in sorted(found)}
    return drawn, statistics(drawn, judged=judged, unknown=unknown)


def from_systems(path: Path, wanted: Wanted, *, margin: float, per_system: int) -> tuple[Negatives, Statistics]:
    """The first ``per_system`` candidates of each system that a cross-encoder puts well below every positive.

    A line is an object ``{"qid", "pos": [...], "neg": {"<system>": [...]}}`` of lists of ``{"pid", "ce-score"}``, best
    candidates first. A candidate is a negative if its score is at most the worst positive's less ``margin``; one that
    an earlier system brought does not count for a later one (BEIR, examples/retrieval/training/train_msmarco_v3.py).
    The rank is the place in the system's list.

    Raises:
        EncoreError: a line is no such object (with its number), or nothing in the file is of this collection.
    """
    drawn: Negatives = {query: {} for query in sorted(wanted.queries)}
    judged = unknown = strange = lines = 0
    for row in _objects(path):
        query, lines = str(row["qid"]), lines + 1
        strange += query not in wanted.judgments
        for candidates in row["neg"].values() if query in drawn else []:
            free = [each for each in enumerate(_scored(candidates), 1) if each[1][0] in wanted.documents]
            unjudged = [each for each in free if not wanted.is_judged(query, each[1][0])]
            unknown, judged = unknown + len(candidates) - len(free), judged + len(free) - len(unjudged)
            drawn[query] |= _first(unjudged, _limit(row["pos"], margin), drawn[query], per_system)
    _refuse_strange(path, lines, strange)
    return drawn, statistics(drawn, judged=judged, unknown=unknown + strange)


def _limit(positives: list[dict[str, Any]], margin: float) -> float:
    """The highest score of a negative; without a positive that was scored, nothing is one."""
    return min((score for _, score in _scored(positives)), default=float("-inf")) - margin


def _first(
    candidates: list[tuple[int, tuple[str, float]]], limit: float, taken: Container[str], count: int
) -> dict[str, int]:
    """The first candidates of a system that score low enough and that no other has brought, with their ranks."""
    low = {document: rank for rank, (document, score) in candidates if score <= limit and document not in taken}
    return dict(list(low.items())[:count])


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in numbered_lines(path):
        try:
            row = json.loads(line)
            _scored(row["pos"]), [_scored(candidates) for candidates in row["neg"].values()], row["qid"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EncoreError(
                f'{path}, line {number}: not {{"qid", "pos", "neg": {{system: [{{"pid", "ce-score"}}]}}}} ({error!r}); '
                "mend or remove the line"
            ) from error
        yield row


def _scored(candidates: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return [(str(candidate["pid"]), float(candidate["ce-score"])) for candidate in candidates]


def _refuse_strange(path: Path, lines: int, unknown: int) -> None:
    if unknown == lines:
        raise EncoreError(f"{path}: nothing in it is about queries and documents of this collection; name its own file")

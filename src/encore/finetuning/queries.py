"""The judged queries that a fine-tuning step learns from, in rows of the token store."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from encore.data.judged import JudgedQuery
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.negatives.mining import Negatives


@dataclass(frozen=True)
class Query:
    """A training query, in rows of the token store."""

    row: int
    positives: tuple[int, ...]  # passages of its highest grade
    relevant: frozenset[int]  # passages of any grade above 0
    judged: frozenset[int]
    negatives: tuple[int, ...]


@dataclass(frozen=True)
class Example:
    """A query with the passages that it brings to a batch, its positive first."""

    query: Query
    passages: list[int]


def in_rows(
    judged: Mapping[str, JudgedQuery], store: TokenStore, negatives: Negatives, positives: Negatives | None = None
) -> list[Query]:
    """These queries in rows of the store, but for those that nothing is right for, or everything.

    Args:
        positives: documents that are right for a query besides those of its highest grade.
    """
    rows, further = store.queries.names.find(judged), positives or {}
    named = [each for name, own in judged.items() for each in (*own, negatives.get(name, ()), further.get(name, ()))]
    passages = store.passages.names.find(document for each in named for document in each)
    try:
        found = [
            _query(rows[name], own, passages, negatives=negatives.get(name, ()), further=further.get(name, ()))
            for name, own in judged.items()
        ]
    except KeyError as error:
        raise EncoreError(
            f"{error} is judged or a negative, but not in the token store; make the tokens again"
        ) from error
    found = [query for query in found if query.positives and len(query.judged) < len(store.passages)]
    if not found:
        raise EncoreError(f"no training query has a relevant passage in {store.folder}; nothing to learn")
    return found


def _query(
    row: int, own: JudgedQuery, passages: Mapping[str, int], *, negatives: Iterable[str], further: Iterable[str]
) -> Query:
    """A query in rows; what is excluded counts as judged, and as relevant where it would be a negative in a batch."""
    right = {passages[document] for document in further}
    kept_out = {passages[document] for document in own.excluded if document in passages}
    relevant = frozenset(passages[document] for document, grade in own.grades.items() if grade > 0)
    return Query(
        row=row,
        positives=tuple(sorted({passages[document] for document in own.best} | right)),
        relevant=relevant | right | kept_out,
        judged=frozenset(passages[document] for document in own.grades) | right | kept_out,
        negatives=tuple(passage for document in negatives if (passage := passages[document]) not in kept_out),
    )


def filled(query: Query, count: int, passages: int) -> Query:
    """A query with at least ``count`` negatives: where it has too few, unjudged passages drawn for it alone.

    A teacher must be shown every passage that may come up, so nothing is drawn later; of two counts the smaller takes
    the first of what the larger takes.
    """
    sampled_negatives, seen = list(query.negatives), {*query.judged, *query.negatives}
    rng = np.random.default_rng(query.row)
    while len(sampled_negatives) < count and len(seen) < passages:
        passage = int(rng.integers(passages))
        if passage not in seen:
            seen.add(passage)
            sampled_negatives.append(passage)
    return replace(query, negatives=tuple(sampled_negatives))

"""The judged queries that a fine-tuning step learns from, in rows of the token store."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from encore.data.collection import Collection, sampled, topics
from encore.data.judgments import highest_graded
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


def judged_queries(
    collection: Collection,
    store: TokenStore,
    negatives: Negatives,
    split: str,
    queries: int | None,
    sample: int,
    least_negatives: int,
    positives: Negatives | None = None,
    excluded: Mapping[str, Set[str]] = MappingProxyType({}),
) -> list[Query]:
    """The judged queries of a split that have negatives enough, or that sample of them.

    Args:
        positives: documents that are right for a query besides those of its highest grade.
        excluded: documents that are no negatives of a query though unjudged, neither drawn nor in a batch.
    """
    judgments = collection.qrels(split)
    enough = [name for name in topics(collection, split) if len(negatives.get(name, ())) >= least_negatives]
    if not enough:
        raise EncoreError(f"no query has as many as {least_negatives} negatives; lower `least_negatives`")
    names = sampled(enough, queries, sample)
    best = {name: highest_graded(judgments[name]) for name in names}
    rows, further = store.queries.names.find(names), positives or {}
    listed = [each.get(name, {}) for name in names for each in (judgments, negatives, further)]
    passages = store.passages.names.find(document for each in listed for document in each)
    unjudged = store.passages.names.find(document for name in names for document in excluded.get(name, ()))
    try:
        found = [
            _query(
                *(rows[name], judgments[name], best[name], further.get(name, {}), negatives.get(name, {}), passages),
                kept_out=frozenset(unjudged[document] for document in excluded.get(name, ()) if document in unjudged),
            )
            for name in names
        ]
    except KeyError as error:
        raise EncoreError(
            f"{error} is judged or a negative, but not in the token store; make the tokens again"
        ) from error
    found = [query for query in found if query.positives and len(query.judged) < len(store.passages)]
    if not found:
        raise EncoreError(
            f"no query of {collection.folder} has a relevant passage in the training role; nothing to learn"
        )
    return found


def _query(
    row: int,
    judged: Mapping[str, int],
    best: Iterable[str],
    positives: Iterable[str],
    negatives: Iterable[str],
    passages: Mapping[str, int],
    kept_out: Set[int],
) -> Query:
    """A query with documents of its highest grade and others that are right for it.

    ``kept_out``: passages that count as judged, and as relevant where they would be negatives in a batch.
    """
    further = {passages[document] for document in positives}
    return Query(
        row=row,
        positives=tuple(sorted({passages[document] for document in best} | further)),
        relevant=frozenset(passages[document] for document, grade in judged.items() if grade > 0) | further | kept_out,
        judged=frozenset(passages[document] for document in judged) | further | kept_out,
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

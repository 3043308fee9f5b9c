"""The judged queries of a split: their answers, and what is no negative of them though nobody judged it."""

from collections import defaultdict
from collections.abc import Mapping, Set, Sized
from types import MappingProxyType
from typing import NamedTuple

from encore.config.datasets import Ignored
from encore.data.collection import Collection, sampled
from encore.data.copies import copies_of, normal_form
from encore.data.judgments import highest_graded
from encore.errors import EncoreError


class JudgedQuery(NamedTuple):
    """A query's grades by document, the documents of its highest grade, and unjudged ones that are no negatives."""

    grades: Mapping[str, int]
    best: Set[str]
    excluded: Set[str] = frozenset()


def judged_queries(
    collection: Collection,
    split: str,
    queries: int | None = None,
    sample: int = 0,
    *,
    ignored: Ignored = Ignored(),  # noqa: B008  # frozen
    negatives: Mapping[str, Sized] = MappingProxyType({}),
    least_negatives: int = 0,
) -> dict[str, JudgedQuery]:
    """The judged queries of a split, or a sample of those that have negatives enough, by id and in file order."""
    grades = collection.qrels(split)
    enough = [name for name in grades if len(negatives.get(name, ())) >= least_negatives]
    if not enough:
        raise EncoreError(f"no query has as many as {least_negatives} negatives; lower `least_negatives`")
    excluded = no_negatives(collection, split, ignored)
    return {
        name: JudgedQuery(grades[name], highest_graded(grades[name]), excluded.get(name, frozenset()))
        for name in sampled(enough, queries, sample)
    }


def no_negatives(collection: Collection, split: str, ignored: Ignored) -> dict[str, set[str]]:
    """Documents that are no negatives though nobody judged them, by query of a training split, for those that have any.

    With ``ignore_identical_ids`` the document of the query's id, if there is one; with ``ignore_copies`` those that are
    relevant for a query of equal text, and all that have the text of a relevant one.
    """
    found: dict[str, set[str]] = defaultdict(set)
    judged = collection.qrels(split) if ignored.ignore_identical_ids or ignored.ignore_copies else {}
    if ignored.ignore_copies:
        texts = {query: normal_form(text) for query, text in collection.queries().items() if query in judged}
        relevant: dict[str, set[str]] = defaultdict(set)
        for query, grades in judged.items():
            relevant[texts[query]] |= {document for document, grade in grades.items() if grade > 0}
        copies = copies_of(collection, set().union(*relevant.values()))
        for query, grades in judged.items():
            alike = relevant[texts[query]].union(*(copies.get(name, ()) for name in relevant[texts[query]]))
            if others := alike - grades.keys():
                found[query] = others
    if ignored.ignore_identical_ids:
        for query in judged:
            found[query].add(query)
    return dict(found)

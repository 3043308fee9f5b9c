"""What is no negative of a split's queries though nobody judged it."""

from collections import defaultdict

from encore.config.datasets import Ignored
from encore.data.collection import Collection
from encore.data.copies import copies_of, normal_form


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

"""Which documents of a collection contain an answer to the questions that they were retrieved for.

The corpus is read once, no more of it is held than one passage, and each passage is normalised once, whatever many
questions retrieved it.
"""

from collections.abc import Iterable, Mapping

from encore.data.answers import contains, spread
from encore.data.collection import Collection
from encore.errors import EncoreError


def answering(retrieved: Mapping[str, Iterable[str]], collection: Collection) -> dict[str, set[str]]:
    """Of each question's documents those whose text (not title) has an answer to it.

    Raises:
        EncoreError: the collection has no answers, or none to one of the questions, or not one of the documents.
    """
    answers = _spread(retrieved, collection)
    queries_of: dict[str, list[str]] = {}
    for query, documents in retrieved.items():
        for document in documents:
            queries_of.setdefault(document, []).append(query)
    found: dict[str, set[str]] = {query: set() for query in retrieved}
    missing = len(queries_of)
    for row in collection.documents(queries_of):
        text = spread(row["text"])
        for query in queries_of[row["_id"]]:
            if contains(text, answers[query]):
                found[query].add(row["_id"])
        queries_of[row["_id"]], missing = [], missing - 1
    if missing:
        lost = min(document for document, queries in queries_of.items() if queries)
        raise EncoreError(f"document {lost!r} of the run is not in {collection.folder}; search it again")
    return found


def _spread(queries: Iterable[str], collection: Collection) -> dict[str, list[str]]:
    answers = collection.answers()
    missing = sorted(query for query in queries if query not in answers)
    if missing:
        raise EncoreError(f"{len(missing)} questions have no answers, such as {missing[0]!r}; give them some")
    return {query: [spread(answer) for answer in answers[query]] for query in queries}

"""What a model that writes queries learns from: passages and the training queries that they answer."""

from typing import NamedTuple

from encore.data.collection import Collection, topics
from encore.data.judgments import highest_graded
from encore.errors import EncoreError


class QueryPassagePair(NamedTuple):
    """A passage's text and a query that it answers."""

    passage: str
    query: str


def training_pairs(
    collection: Collection, split: str, queries: int | None = None, sample: int = 0
) -> list[QueryPassagePair]:
    """Each query of the split, or of a sample of it, with each of its best passages.

    Nothing else of the collection's queries and judgments is looked at: predictions for the passages that validation
    and test queries ask for are made without them.

    Raises:
        EncoreError: nothing is judged relevant.
    """
    judged, texts = collection.qrels(split), collection.queries()
    chosen = topics(collection, split, queries, sample)
    pairs = [(query, name) for query in chosen for name in highest_graded(judged[query])]
    wanted = {name for _, name in pairs}
    passages = {name: " ".join(text) for name, text in collection.texts() if name in wanted}
    if not pairs:
        raise EncoreError(f"no query of split {split!r} of {collection.folder} has a relevant passage to learn from")
    return [QueryPassagePair(passages[name], texts[query]) for query, name in sorted(pairs)]

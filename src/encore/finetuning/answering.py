"""Which retrieved passages contain an answer to their question: no negatives, perhaps more positives (BoW, for QA)."""

from collections.abc import Mapping

from encore.collections.answers import contains, spread
from encore.collections.common import Collection
from encore.errors import EncoreError
from encore.finetuning.negatives import Negatives, Ranking


def answering(ranking: Ranking, collection: Collection, depth: int, first_rank: int = 1) -> Negatives:
    """The ranked documents of each query, from ``first_rank`` to ``depth``, whose text (not title) has an answer.

    Returns:
        For every ranked query such documents with their rank.

    Raises:
        EncoreError: the collection has no answers, or none to a ranked query, or not a ranked document.
    """
    answers = _spread_answers(ranking, collection.answers())
    asked: dict[str, list[tuple[str, int]]] = {}
    for query in sorted(ranking):
        for rank, document in enumerate(ranking[query][:depth], 1):
            if rank >= first_rank:
                asked.setdefault(document, []).append((query, rank))
    found: Negatives = {query: {} for query in sorted(ranking)}
    for row in collection.corpus():
        pairs = asked.pop(row["_id"], [])
        text = spread(row["text"]) if pairs else ""
        for query, rank in pairs:
            if contains(text, answers[query]):
                found[query][row["_id"]] = rank
    if asked:
        raise EncoreError(f"document {min(asked)!r} of the run is not in {collection.folder}; search it again")
    return {query: dict(sorted(ranks.items(), key=lambda pair: pair[1])) for query, ranks in found.items()}


def _spread_answers(ranking: Ranking, answers: Mapping[str, list[str]]) -> dict[str, list[str]]:
    missing = sorted(query for query in ranking if query not in answers)
    if missing:
        raise EncoreError(f"{len(missing)} training queries have no answers, such as {missing[0]!r}; give them some")
    return {query: [spread(answer) for answer in answers[query]] for query in ranking}

"""Retrieved passages that contain an answer to their question: not negatives, perhaps positives (BoW, for QA)."""

from encore.data import answer_matching
from encore.data.collection import Collection
from encore.finetuning.negatives.mining import Negatives, Ranking


def answering(ranking: Ranking, collection: Collection, depth: int, first_rank: int = 1) -> Negatives:
    """The ranked documents of each query, from ``first_rank`` to ``depth``, whose text (not title) has an answer.

    Returns:
        For every ranked query such documents with their rank.
    """
    ranks = {
        query: {document: rank for rank, document in enumerate(ranking[query][:depth], 1) if rank >= first_rank}
        for query in sorted(ranking)
    }
    found = answer_matching.answering(ranks, collection)
    return {
        query: {document: rank for document, rank in places.items() if document in found[query]}
        for query, places in ranks.items()
    }

"""Negatives that a collection was published with, as DPR's training questions are (Karpukhin et al. 2020, 3.2)."""

from collections.abc import Mapping, Set
from sys import intern

from encore.data.collection import Collection, smallest
from encore.finetuning.negatives.mining import Negatives, Statistics, statistics


def published(
    collection: Collection,
    split: str,
    query_ids: list[str],
    *,
    keep: int,
    seed: int,
    excluded: Mapping[str, Set[str]],
    exclude_judged: bool = True,
) -> tuple[Negatives, Statistics]:
    """At most ``keep`` of each query's, drawn as from a run, with their ranks; passages that do not exist are left out.

    Of the judged ones only the relevant are excluded.

    Args:
        excluded: documents that are not negatives of a query, besides the relevant ones.
    """
    judged = collection.qrels(split)
    found: dict[str, dict[str, int]] = {query: {} for query in query_ids}
    taken_out = 0
    for query, document, rank in collection.negatives(split):
        if query in found and (
            (exclude_judged and judged[query].get(document, 0) > 0) or document in excluded.get(query, ())
        ):
            taken_out += 1
        elif query in found:
            found[query][intern(document)] = rank  # many questions share one
    sampled = {query: smallest(ranks, keep, f"{seed}:{query}") for query, ranks in sorted(found.items())}
    missing = {document for documents in sampled.values() for document in documents}
    for row in collection.corpus():
        missing.discard(row["_id"])
    kept = {
        query: {
            each: found[query][each] for each in sorted(documents, key=found[query].__getitem__) if each not in missing
        }
        for query, documents in sampled.items()
    }
    unknown = sum(map(len, sampled.values())) - sum(map(len, kept.values()))
    return kept, statistics(kept, judged=taken_out, unknown=unknown)

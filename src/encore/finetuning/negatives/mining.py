"""Negatives for fine-tuning: passages that a run ranks high for a training query and that nobody judged.

BM25's negatives and a model's own mined ones are made the same way, from a TREC run over the training queries: the
first ``depth`` ranks, judged documents taken out, ``keep`` of the rest drawn (COSTA: 200, 30; BoW: 200, 128,
without the first two ranks) or the best-ranked ones taken (RocketQA's code: 50, 4). TCT-ColBERT's code leaves the
positives in, hence ``exclude_judged``. Those that a collection was published with, as DPR's training questions are
(Karpukhin et al. 2020, 3.2), are drawn alike.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from pathlib import Path
from sys import intern
from typing import Literal

from encore.data import answer_matching
from encore.data.collection import Collection, smallest
from encore.data.rankings import Run
from encore.errors import EncoreError
from encore.storage.files import open_text, open_text_writer, write_json

HEADER = "query-id\tcorpus-id\trank"
FILE, POSITIVES = "negatives.tsv.gz", "positives.tsv.gz"
Ranking = Mapping[str, Sequence[str]]
Answering = Mapping[str, AbstractSet[str]]
Judgments = Mapping[str, Mapping[str, int]]
Negatives = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Statistics:
    """The statistics of mining: counts over queries and (query, document) pairs."""

    queries: int
    without: int  # queries left with no negative at all
    kept: int
    judged: int  # candidates dropped because they are judged for the query (of a given list also its own, and copies)
    answering: int = 0  # candidates dropped because they contain an answer to the query, or score as if they did
    unknown: int = 0  # lines of a given file about a query or document that the collection does not have


def mine(
    ranking: Ranking,
    judgments: Judgments,
    *,
    depth: int,
    keep: int,
    kept: Literal["random", "first"] = "random",
    exclude_judged: bool = True,
    seed: int = 0,
    first_rank: int = 1,
    answering: Answering | None = None,
) -> tuple[Negatives, Statistics]:
    """Draw at most ``keep`` negatives for each ranked query, or take its ``first`` ones.

    A draw is the ``keep`` smallest digests of (seed, query, document): a query's draw does not depend on other queries,
    and one candidate more or less changes one negative and not all.

    Args:
        ranking: documents of each query, best first.
        judgments: grades of each query's judged documents.
        depth, first_rank: the last and the best rank that negatives are drawn from.
        answering: documents of each query that are right though nobody judged them; these are not negatives either.

    Returns:
        For each query its negatives with their rank (1 is the best), in rank order; and counts.
    """
    negatives: Negatives = {}
    judged = answered = 0
    for query in sorted(ranking):
        if query not in judgments:
            raise EncoreError(
                f"query {query} of the run has no judgments in this split; mine from a run over the training queries"
            )
        top = {document: rank for rank, document in enumerate(ranking[query][:depth], 1) if rank >= first_rank}
        unjudged = [document for document in top if document not in judgments[query]] if exclude_judged else list(top)
        free = [document for document in unjudged if document not in answering[query]] if answering else unjudged
        judged, answered = judged + len(top) - len(unjudged), answered + len(unjudged) - len(free)
        sampled = free[:keep] if kept == "first" else smallest(free, keep, f"{seed}:{query}")
        negatives[query] = {document: top[document] for document in sorted(sampled, key=top.__getitem__)}
    return negatives, statistics(negatives, judged=judged, answering=answered)


def published(
    collection: Collection,
    split: str,
    query_ids: list[str],
    *,
    keep: int,
    seed: int,
    excluded: Answering,
    exclude_judged: bool = True,
) -> tuple[Negatives, Statistics]:
    """Draw at most ``keep`` of each query's with their ranks, as from a run; passages that do not exist are left out.

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


class Candidates(Mapping[str, Sequence[str]]):
    """The documents of each query of a run, best first, but for its ``excluded`` ones (``no_negatives``).

    Each list is made when it is asked for: together those of MS MARCO's training queries take gigabytes.
    """

    def __init__(self, run: Run, excluded: Answering) -> None:
        self.run, self.excluded = run, excluded

    def __getitem__(self, query: str) -> list[str]:
        left_out = self.excluded.get(query, ())
        return [document for document in self.run[query].documents if document not in left_out]

    def __iter__(self) -> Iterator[str]:
        return iter(self.run)

    def __len__(self) -> int:
        return len(self.run)


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


def false_negatives(run: Run, below: float) -> dict[str, set[str]]:
    """The documents of each query whose score, a logit, is of a probability of at least ``below`` (RocketQA, 3.2)."""
    least = math.log(below / (1 - below))
    return {
        query: {
            document for document, score in zip(found.documents, found.scores.tolist(), strict=True) if score >= least
        }
        for query, found in run.items()
    }


def statistics(negatives: Negatives, **counts: int) -> Statistics:
    """Counts of any set of negatives, with those of its mining."""
    without = sum(not sampled for sampled in negatives.values())
    return Statistics(len(negatives), without, sum(map(len, negatives.values())), **{"judged": 0, **counts})


def merge(first: Negatives, second: Negatives) -> Negatives:
    """Both sets as one; a document of both has its rank in the first."""
    return {query: second.get(query, {}) | first.get(query, {}) for query in sorted({*first, *second})}


def identity(negatives: Negatives) -> str:
    """The sha256 of a set of negatives: of its sorted pairs of query and document, whatever their ranks."""
    digest = hashlib.sha256()
    for query in sorted(negatives, key="{}\t".format):  # as the pairs are sorted, and never all of them at once
        pairs = sorted(f"{query}\t{document}\n" for document in negatives[query])
        digest.update("".join(pairs).encode())
    return digest.hexdigest()


def write_negatives(
    folder: Path, negatives: Negatives, counts: Statistics, positives: Negatives | None = None
) -> dict[str, int | float | str | None]:
    """Write ``negatives.tsv.gz``, further positives where there are such, and ``statistics.json``.

    Equal input gives equal bytes.

    Returns:
        The content of ``statistics.json``: the counts, and the digest of the set.
    """
    found = {**asdict(counts), "set": identity(negatives)}
    _write_pairs(folder / FILE, negatives)
    (folder / POSITIVES).unlink(missing_ok=True)
    if positives is not None:
        _write_pairs(folder / POSITIVES, positives)
        found["positives"] = sum(map(len, positives.values()))
    write_json(folder / "statistics.json", found)
    return found


def read_negatives(folder: Path) -> Negatives:
    """The negatives of each query that has some."""
    return _read_pairs(folder / FILE)


def read_positives(folder: Path) -> Negatives:
    """The passages besides the judged ones that are right for a query; none where its recipe looks for none."""
    return _read_pairs(folder / POSITIVES) if (folder / POSITIVES).is_file() else {}


def _write_pairs(path: Path, sampled: Negatives) -> None:
    with open_text_writer(path) as file:
        file.write(HEADER + "\n")
        for query, documents in sampled.items():
            file.writelines(f"{query}\t{document}\t{rank}\n" for document, rank in documents.items())


def _read_pairs(path: Path) -> Negatives:
    found: Negatives = {}
    once: dict[str, str] = {}  # many queries share a document, whose id is then held once
    number = 1
    try:
        with open_text(path) as file:
            if file.readline().rstrip("\n") != HEADER:
                raise ValueError("not a file of negatives")
            for line in file:
                number += 1
                query, document, rank = line.rstrip("\n").split("\t")
                found.setdefault(query, {})[once.setdefault(document, document)] = int(rank)
    except (ValueError, EOFError, OSError) as error:
        raise EncoreError(f"{path}, line {number}: {error}; mine the negatives again") from error
    return found

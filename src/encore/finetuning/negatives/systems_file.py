"""Negatives from several retrieval systems, kept if a cross-encoder scores them as negatives.

As BEIR's script has it (examples/retrieval/training/train_msmarco_v3.py): a candidate is a negative if its score is at
most the worst positive's less a margin, and one that an earlier system brought does not count for a later one. The
scores are in the file, as that script reads them, or next to it, as sentence-transformers publishes them now.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from encore.errors import EncoreError
from encore.finetuning.negatives.mining import Negatives, Statistics, statistics
from encore.finetuning.negatives.pair_scores import PublishedScores
from encore.finetuning.negatives.request import NegativesRequest, refuse_foreign_file
from encore.storage.text_files import numbered_objects

Scored = list[tuple[str, float]]  # documents with their scores, best candidates first


def from_systems(
    path: Path, wanted: NegativesRequest, scores: PublishedScores | None = None, *, margin: float, per_system: int
) -> tuple[Negatives, Statistics]:
    """The first ``per_system`` candidates of each system that score well below every positive.

    A line is an object ``{"qid", "pos": [...], "neg": {"<system>": [...]}}`` of lists of ``{"pid", "ce-score"}``, or of
    ids alone where ``scores`` has their scores. The rank of a negative is its place in the system's list.
    """
    sampled: Negatives = {query: {} for query in sorted(wanted.queries)}
    judged = unknown = strange = lines = 0
    for query, positives, systems in _lines(path, wanted, scores):
        lines += 1
        strange += query not in wanted.judgments
        limit = min((score for _, score in positives), default=float("-inf")) - margin
        left_out = wanted.left_out(query) if query in sampled else frozenset[str]()
        for candidates in systems if query in sampled else []:
            free = [each for each in enumerate(candidates, 1) if each[1][0] in wanted.documents]
            unjudged = [each for each in free if each[1][0] not in left_out]
            unknown, judged = unknown + len(candidates) - len(free), judged + len(free) - len(unjudged)
            low = {
                document: rank
                for rank, (document, score) in unjudged
                if score <= limit and document not in sampled[query]
            }
            sampled[query] |= dict(list(low.items())[:per_system])
    refuse_foreign_file(path, lines, strange)
    return sampled, statistics(sampled, judged=judged, unknown=unknown + strange)


def _lines(
    path: Path, wanted: NegativesRequest, scores: PublishedScores | None
) -> Iterator[tuple[str, Scored, list[Scored]]]:
    """Each line's query, positives and systems; if scores are in another file, those of wanted queries alone."""
    for number, row in numbered_objects(path):
        try:
            query, positives, systems = str(row["qid"]), row["pos"], list(row["neg"].values())
            if scores is None:
                yield query, _scored(positives), [_scored(candidates) for candidates in systems]
            elif query in wanted.queries:
                yield query, scores.of(query, positives), [scores.of(query, candidates) for candidates in systems]
            else:
                yield query, [], []
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            each = '{"pid", "ce-score"}' if scores is None else "id with a score"
            form = f'{{"qid", "pos", "neg": {{system: [{each}]}}}}'
            raise EncoreError(f"{path}, line {number}: not {form} ({error!r}); fix or remove the line") from error


def _scored(candidates: list[dict[str, Any]]) -> Scored:
    return [(str(candidate["pid"]), float(candidate["ce-score"])) for candidate in candidates]

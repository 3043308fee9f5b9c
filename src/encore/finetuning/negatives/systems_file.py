"""Negatives from several retrieval systems, kept if a cross-encoder scores them as negatives.

As BEIR's script has it (examples/retrieval/training/train_msmarco_v3.py): a candidate is a negative if its score is at
most the worst positive's less a margin, and one that an earlier system brought does not count for a later one. The
scores are in the file, as that script reads them, or next to it, as sentence-transformers publishes them now: a pickled
dictionary of dictionaries.
"""

import pickletools
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from encore.errors import EncoreError, quoted
from encore.finetuning.negatives.mining import Negatives, Statistics, statistics
from encore.finetuning.negatives.triples import NegativesRequest, refuse_foreign_file
from encore.storage.text_files import numbered_objects, opened

Scored = list[tuple[str, float]]  # documents with their scores, best candidates first


class PublishedScores:
    """Scores of the wanted queries' pairs."""

    def __init__(self, pairs: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
        """``pairs`` are each query's documents, int64 [n], ascending, and their scores, float32 [n]."""
        self._pairs = pairs

    @classmethod
    def read(cls, path: Path, queries: Container[str]) -> "PublishedScores":
        """Read a file ``scores[query][document] -> score``, plain or ``.gz``, and keep what is of the queries."""
        pairs = {}
        try:
            with opened(path) as file:
                for query, documents, scores in _pickled_scores(file):
                    if str(query) in queries:
                        order = np.argsort(documents)
                        pairs[str(query)] = (
                            np.array(documents, dtype=np.int64)[order],
                            np.array(scores, dtype=np.float32)[order],
                        )
        except Exception as error:  # damaged files raise anything
            raise EncoreError(
                f"{path} does not hold a dictionary of scores alone ({quoted(str(error))}); do not use it, fetch it "
                "again"
            ) from error
        if not pairs:
            raise EncoreError(f"{path} has no score of any training query; name the file of this collection")
        return cls(pairs)

    def of(self, query: str, documents: Sequence[int | str]) -> list[tuple[str, float]]:
        """Each document with its score.

        Raises:
            KeyError: one has none.
        """
        ids = np.array([int(document) for document in documents], dtype=np.int64)
        known, scores = self._pairs.get(query, (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)))
        places = np.searchsorted(known, ids)
        found = places < len(known)
        found[found] = known[places[found]] == ids[found]
        if not found.all():
            raise KeyError(f"no score of query {query} and passage {ids[~found][0]}")
        return list(zip(map(str, ids.tolist()), scores[places].tolist(), strict=True))


def _pickled_scores(file: IO[bytes]) -> Iterator[tuple[int, list[int], list[float]]]:
    """Each query with its documents and their scores, from a pickle none of whose operations is carried out.

    Python's unpickler calls whatever a file names, and its 160 million pairs would take 16 GB.
    """
    numbers: list[int] = []  # that nothing has taken yet: a query's, then a document's
    query, documents, scores = -1, list[int](), list[float]()
    value: Any
    for operation, value, _ in pickletools.genops(file):
        name = operation.name
        if name in ("BININT", "BININT2", "BININT1"):
            numbers.append(value)
        elif name == "BINFLOAT":
            documents.append(numbers.pop())
            scores.append(value)
        elif name == "SHORT_BINBYTES":  # a number of NumPy's
            documents.append(numbers.pop())
            scores.append(np.frombuffer(value, f"<f{len(value)}").item())
        elif name == "BUILD":  # NumPy's type of number, which has four others in it
            del numbers[-4:]
        elif name in ("EMPTY_DICT", "STOP"):  # before the dictionary of the next query, or at the end
            following = numbers.pop() if numbers and name == "EMPTY_DICT" else -1
            if numbers or (documents and query < 0):
                raise ValueError("it is not a dictionary of dictionaries of numbers")
            if query >= 0:
                yield query, documents, scores
            query, documents, scores = following, [], []


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

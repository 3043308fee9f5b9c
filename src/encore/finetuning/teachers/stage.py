"""A teacher's outputs for its students, computed once: scores of all pairs, or vectors of all texts.

Pairs are each training query with its positives and its negatives. Vectors are of these queries and passages, and give
the score of any query of a batch with any passage of it.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from encore.data.collection import Collection
from encore.data.judged import judged_queries
from encore.data.runs import read_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.negatives import mining
from encore.finetuning.queries import Query, filled, in_rows
from encore.finetuning.scoring import LateInteractionScorer, Scorer, VectorScorer, open_scorer
from encore.finetuning.teachers import TeacherRequest
from encore.finetuning.teachers.outputs import write_scores, write_vectors
from encore.storage import manifest
from encore.training import machine

TOGETHER = 8192  # texts that are embedded before their vectors are written
SELECTION = {"split", "queries", "sample", "least_negatives"}  # the fields that say which queries


def write_teacher_outputs(
    request: TeacherRequest,
    model: Path,
    tokens: Path,
    collection: Path,
    mined: Path | None,
    output: Path,
    state: Path | None = None,
) -> dict[str, int]:
    """Show a teacher the training queries of a split with their passages; returns counts.

    Args:
        model: the folder of the teacher, or of the run.
        mined: the folder of negatives; None where students bring none.
        state: the folder of scores that are done so far, for a teacher of pairs; left for the caller to remove.
    """
    store = TokenStore(tokens)
    negatives, asked = mining.read_negatives(mined) if mined else {}, request.model_dump(include=SELECTION)
    judged = judged_queries(Collection(collection), **asked, ignored=request, negatives=negatives)
    found = in_rows(judged, store, negatives)
    queries, passages = query_passage_pairs([filled(query, request.fill, len(store.passages)) for query in found])
    counts = {"queries": len(found), "pairs": len(queries)}
    print(f"{counts['pairs']} pairs of {counts['queries']} queries", flush=True)
    if request.form == "listed":
        write_scores(output, queries, passages, listed_scores(model, store, queries, passages))
        return counts
    device = machine.prepare(request.numerics)
    with machine.precision(request.numerics, device):
        teacher = open_scorer(model, store).to(device)
        if request.form == "vectors":
            return counts | _write_vectors(teacher, model, queries, passages, output)
        asked = request.model_dump(mode="json", exclude_unset=True)
        made_of = {"spec": asked, "inputs": manifest.described(model, tokens) if state else []}
        write_scores(output, queries, passages, teacher.score(queries, passages, state=state, spec=made_of))
    return counts


def query_passage_pairs(queries: list[Query]) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of a query and one of its positives or negatives once, as rows of the token store, int64 [N] each."""
    shown = [(query.row, passage) for query in queries for passage in sorted({*query.positives, *query.negatives})]
    rows, passages = np.array(shown, dtype=np.int64).reshape(-1, 2).T
    return rows, passages


def listed_scores(run: Path, store: TokenStore, queries: np.ndarray, passages: np.ndarray) -> np.ndarray:
    """The scores of pairs in a run, float32 [n].

    A passage that the run does not list for a query gets the lowest score listed for that query, as in a fusion; all
    passages of a query without results get 0.

    Args:
        run: the folder of a run that has these queries.
        queries, passages: rows of the store, int64 [n], grouped by query.
    """
    answers, scores = read_run(run), np.zeros(len(queries), dtype=np.float32)
    bounds = np.append(np.flatnonzero(np.diff(queries, prepend=-1)), len(queries))
    for first, end in pairwise(bounds.tolist()):
        answer = answers.get(store.queries.names[int(queries[first])])
        if answer is not None and len(answer):
            own, lowest = dict(zip(answer.documents, answer.scores, strict=True)), answer.scores.min()
            scores[first:end] = [own.get(name, lowest) for name in store.passages.names.take(passages[first:end])]
    return scores


def _write_vectors(
    teacher: Scorer, model: Path, queries: np.ndarray, passages: np.ndarray, output: Path
) -> dict[str, int]:
    if not isinstance(teacher, LateInteractionScorer | VectorScorer):
        raise EncoreError(
            f"{model} gives texts no vectors, so it cannot score a batch; use `loss: kl-pairwise` with it"
        )
    kind = "token" if isinstance(teacher, LateInteractionScorer) else "text"

    def in_turn(embed: Callable[[np.ndarray], Iterable[np.ndarray]], rows: np.ndarray) -> Iterator[np.ndarray]:
        for start in range(0, len(rows), TOGETHER):
            yield from embed(rows[start : start + TOGETHER])

    shown = {"queries": (teacher.queries, np.unique(queries)), "passages": (teacher.passages, np.unique(passages))}
    return {
        f"vectors_of_{name}": write_vectors(output, name, rows, in_turn(embed, rows), kind)
        for name, (embed, rows) in shown.items()
    }

"""A teacher's one look at what its students will learn from: scores of all pairs, or vectors of all texts.

Pairs are each training query with its positives and its negatives. Vectors are of these queries and passages, and give
the score of any query of a batch with any passage of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from encore.data.collection import Collection
from encore.data.tokens import Sequences, TokenStore
from encore.errors import EncoreError
from encore.finetuning.negatives import mining
from encore.finetuning.queries import Query, filled, judged_queries
from encore.finetuning.scoring import open_scorer
from encore.finetuning.scoring.late_interaction import LateInteractionScorer, TokenVectors
from encore.finetuning.scoring.scorer import Scorer, ScoreState
from encore.finetuning.scoring.vector import VectorScorer
from encore.finetuning.teachers.outputs import write_scores, write_vectors
from encore.models import checkpoint
from encore.models import embed as vectors
from encore.models.encoder import Encoder
from encore.training import machine

TOGETHER = 8192  # texts that are embedded before their vectors are written
Embed = Callable[[np.ndarray], Iterator[np.ndarray]]  # rows of the store -> vectors [n, D] of each


def write_teacher_outputs(
    spec: dict[str, Any],
    model: Path,
    tokens: Path,
    collection: Path,
    mined: Path | None,
    output: Path,
    state: Path | None = None,
    checkpoint_seconds: float = 120.0,
) -> dict[str, int]:
    """Show a teacher the training queries of a split with their passages; returns counts.

    Args:
        spec: ``form`` (``scores`` or ``vectors``), ``split``, ``queries``, ``sample`` and ``least_negatives``, ``fill``
            (negatives that each query has at least), ``numerics``.
        mined: the folder of negatives; None where students bring none.
        state: the folder of scores that are done so far, for a teacher of pairs; left for the caller to remove.
        checkpoint_seconds: between two writings of them.

    Raises:
        EncoreError: the model is of another vocabulary or not of a kind that the form asks for.
    """
    device = machine.prepare(spec["numerics"])
    store = TokenStore.open(tokens)
    sampled_negatives = mining.read_negatives(mined) if mined else {}
    found = judged_queries(
        Collection(collection),
        store,
        sampled_negatives,
        *(spec[name] for name in ("split", "queries", "sample", "least_negatives")),
    )
    queries, passages = query_passage_pairs([filled(query, spec["fill"], len(store.passages)) for query in found])
    counts = {"queries": len(found), "pairs": len(queries)}
    print(f"{counts['pairs']} pairs of {counts['queries']} queries", flush=True)
    with machine.precision(spec["numerics"], device):
        teacher = open_scorer(model, store).to(device)
        if spec["form"] == "vectors":
            return counts | _write_vectors(teacher, model, store, queries, passages, output)
        kept = ScoreState(state, spec, checkpoint_seconds)
        write_scores(output, queries, passages, teacher.score(queries, passages, state=kept))
    return counts


def query_passage_pairs(queries: list[Query]) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of a query and one of its positives or negatives once, as rows of the token store, int64 [N] each."""
    shown = [(query.row, passage) for query in queries for passage in sorted({*query.positives, *query.negatives})]
    rows, passages = np.array(shown, dtype=np.int64).reshape(-1, 2).T
    return rows, passages


def _write_vectors(
    teacher: Scorer, model: Path, store: TokenStore, queries: np.ndarray, passages: np.ndarray, output: Path
) -> dict[str, int]:
    embeds, kind = _embedding(teacher, model, store)
    shown = {"queries": np.unique(queries), "passages": np.unique(passages)}
    return {
        f"vectors_of_{name}": write_vectors(output, name, rows, _in_turn(embeds[name], rows), kind)
        for name, rows in shown.items()
    }


def _embedding(teacher: Scorer, model: Path, store: TokenStore) -> tuple[dict[str, Embed], str]:
    """How queries and passages get their vectors, and what a vector stands for."""
    if isinstance(teacher, LateInteractionScorer):
        return {"queries": _of_tokens(teacher.queries), "passages": _of_tokens(teacher.passages)}, "token"
    if isinstance(teacher, VectorScorer):
        encoder, use = teacher.encoder, checkpoint.load_use(model)
        queries = _of_texts(encoder.query_tower, store.queries, use.query_length)
        return {"queries": queries, "passages": _of_texts(encoder, store.passages, use.length)}, "text"
    raise EncoreError(f"{model} gives texts no vectors, so it cannot score a batch; use `loss: kl-pairwise` with it")


def _of_tokens(embed: Callable[[np.ndarray], TokenVectors]) -> Embed:
    return lambda rows: iter(embed(rows))


def _of_texts(tower: Encoder, sequences: Sequences, length: int) -> Embed:
    return lambda rows: iter(vectors.embed_texts(tower, sequences, rows, length)[:, None])


def _in_turn(embed: Embed, rows: np.ndarray) -> Iterator[np.ndarray]:
    """The vectors of one text after another, embedded some at a time."""
    for start in range(0, len(rows), TOGETHER):
        yield from embed(rows[start : start + TOGETHER])

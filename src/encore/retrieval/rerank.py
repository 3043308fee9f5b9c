"""Ranking a first stage's results again: a scorer orders the best of each query, the rest stays below as it was."""

from pathlib import Path
from typing import Any

import numpy as np

from encore.data.rankings import Ranking, Run, rank
from encore.data.runs import describe, read_header, read_run, write_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.scoring import Scorer, open_scorer
from encore.storage import manifest
from encore.storage.progress import Progress
from encore.training import machine

LARGEST = 2**20  # of a score: below its negative, whole float32 numbers are no longer enough for the ranks below


def answer_reranked(
    spec: dict[str, Any],
    model: Path,
    tokens: Path,
    first: Path,
    output: Path,
    state: Path | None = None,
) -> dict[str, Any]:
    """Rank the first stage's run again with a model, write the run, and return its counts.

    Args:
        spec: ``reranked``, how many of each query's results the model scores; ``depth``, how many are kept;
            ``collection`` and ``split`` of the header, ``numerics``, and ``system``, the name of the run.
        first: the folder of the run.
        state: the folder of scores that are done so far; left for the caller to remove once the result is safe.
    """
    store, numerics = TokenStore(tokens), spec["numerics"]
    device = machine.prepare(numerics)
    with machine.precision(numerics, device):
        made_of = {"inputs": manifest.described(model, tokens) if state else []}
        run, pairs = rerank(read_run(first), open_scorer(model, store).to(device), store, spec | made_of, state)
    before = read_header(first)["method"]["retrieval"]
    stage = {"name": "reranking", "method": "trained scorer", "model": model.name, "depth": spec["reranked"]}
    header = describe(spec["system"], collection=spec["collection"], split=spec["split"], retrieval=[*before, stage])
    write_run(output, run, header)
    print(f"{len(run)} queries ranked again, {pairs} pairs scored", flush=True)
    return {"queries": len(run), "pairs": pairs}


def rerank(
    run: Run, scorer: Scorer, store: TokenStore, spec: dict[str, Any], state: Path | None = None
) -> tuple[Run, int]:
    """The run in its new order, and how many pairs were scored."""
    depth = spec["reranked"]
    queries = store.queries.names.find(run)
    passages = store.passages.names.find(its for found in run.values() for its in found.documents[:depth])
    try:
        pairs = [(queries[name], passages[its]) for name, found in run.items() for its in found.documents[:depth]]
    except KeyError as error:
        raise EncoreError(
            f"{error} is in the run, but not in the token store; make both from the same collection"
        ) from error
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    scores = scorer.score(rows[:, 0], rows[:, 1], Progress("reranking", "pairs", len(rows)).at, state, spec)
    bounds = np.cumsum([0, *(min(depth, len(found)) for found in run.values())])
    reordered = {
        name: above(rank(found.documents[:depth], scores[first:end]), found, spec["depth"])
        for (name, found), first, end in zip(run.items(), bounds[:-1], bounds[1:], strict=True)
    }
    return reordered, len(rows)


def above(best: Ranking, found: Ranking, depth: int) -> Ranking:
    """The reranked documents, and below them the others of the first stage, in their order and with their ties.

    The rest's scores are whole numbers that fall by one wherever the first stage's fall.
    """
    rest = found.scores[len(best) :]
    if not len(rest) or not len(best):
        return Ranking(best.documents[:depth], best.scores[:depth]) if len(best) else found
    lowest = float(best.scores[-1])
    if abs(lowest) > LARGEST:
        raise EncoreError(f"a scorer gives {lowest:g}; the model's training diverged, lower the learning rate")
    falls = np.cumsum([0, *(rest[1:] < rest[:-1])])
    scores = np.concatenate([best.scores, (np.floor(lowest) - 1 - falls).astype(np.float32)])
    return Ranking([*best.documents, *found.documents[len(best) :]][:depth], scores[:depth])

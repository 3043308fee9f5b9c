"""Rankings by a scorer: of a first stage's results, or of a whole collection.

Reranking orders the best of each query's results; the rest stays below as it was.

A model with several vectors a text (ColBERT end to end, ME-BERT) ranks a whole collection. Every passage is embedded
once, a block at a time, and compared with all queries. This is exact; the papers look for the nearest tokens first, in
an index that holds each of them.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encore.data.collection import Collection, QuerySample, topics
from encore.data.rankings import Ranking, Run, RunMatrices, rank
from encore.data.runs import describe, read_header, read_run, write_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.scoring import LateInteractionScorer, Scorer, open_scorer
from encore.models.late_interaction import max_sim
from encore.retrieval.dense import MOST, SPARE, ordered
from encore.retrieval.ranking import BEST
from encore.storage import manifest
from encore.storage.document_ids import DocIds
from encore.storage.progress import Progress
from encore.training import machine

LARGEST = 2**20  # of a score: below its negative, whole float32 numbers are no longer enough for the ranks below
BLOCK = 2048  # passages whose vectors are held at once
QUERIES = {"cpu": 4, "cuda": 32}  # that are compared with a block at once
TOGETHER = 64  # queries whose scores are ranked together


@dataclass(frozen=True)
class Reranking:
    """Which queries are ranked again by a scorer, or all passages for them, and how."""

    asked: QuerySample
    depth: int  # passages that each one gets
    numerics: dict[str, Any]  # as ``machine.prepare`` reads them
    system: str  # the name of the run
    collection: str  # the name of its folder
    reranked: int = 0  # results of each query that the model scores, where those of a first stage are ranked again


def answer_reranked(
    given: Reranking, model: Path, tokens: Path, first: Path, output: Path, state: Path | None = None
) -> dict[str, Any]:
    """Rank the first stage's run again with a model, write the run, and return its counts.

    Args:
        first: the folder of the run.
        state: the folder of scores that are done so far; left for the caller to remove once the result is safe.
    """
    store, device = TokenStore(tokens), machine.prepare(given.numerics)
    with machine.precision(given.numerics, device):
        sealed_by = asdict(given) | {"inputs": manifest.described(model, tokens) if state else []}
        run, pairs = rerank(read_run(first), open_scorer(model, store).to(device), store, given, state, sealed_by)
    before = read_header(first)["method"]["retrieval"]
    stage = {"name": "reranking", "method": "trained scorer", "model": model.name, "depth": given.reranked}
    header = describe(given.system, collection=given.collection, split=given.asked.split, retrieval=[*before, stage])
    write_run(output, run, header)
    print(f"{len(run)} queries ranked again, {pairs} pairs scored", flush=True)
    return {"queries": len(run), "pairs": pairs}


def rerank(
    run: Run, scorer: Scorer, store: TokenStore, given: Reranking, state: Path | None = None, sealed_by: Any = None
) -> tuple[Run, int]:
    """The run in its new order, and how many pairs were scored."""
    depth = given.reranked
    queries = store.queries.names.find(run)
    passages = store.passages.names.find(its for found in run.values() for its in found.documents[:depth])
    try:
        pairs = [(queries[name], passages[its]) for name, found in run.items() for its in found.documents[:depth]]
    except KeyError as error:
        raise EncoreError(
            f"{error} is in the run, but not in the token store; make both from the same collection"
        ) from error
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    scores = scorer.score(rows[:, 0], rows[:, 1], Progress("reranking", "pairs", len(rows)).at, state, sealed_by)
    bounds = np.cumsum([0, *(min(depth, len(found)) for found in run.values())])
    reordered = {
        name: above(rank(found.documents[:depth], scores[first:end]), found, given.depth)
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


def answer_by_tokens(given: Reranking, model: Path, tokens: Path, collection: Path, output: Path) -> dict[str, int]:
    """Rank all passages for the queries of a split, write the run, and return its counts."""
    store, names = TokenStore(tokens), topics(Collection(collection), *given.asked)
    device = machine.prepare(given.numerics)
    with machine.precision(given.numerics, device):
        scorer = open_scorer(model, store).to(device)
        if not isinstance(scorer, LateInteractionScorer):
            raise EncoreError(f"{model} has no vectors of tokens to rank a whole collection by; name a `first` stage")
        depth, queries, passages = given.depth, store.queries.names.rows(names), len(store.passages)
        wanted = depth + SPARE
        scores, rows = best(scorer, queries, passages, wanted)
        while wanted < min(passages, MOST * depth) and (scores[:, depth - 1] == scores[:, -1]).any():  # a cut tie
            wanted *= 4
            scores, rows = best(scorer, queries, passages, wanted)
    documents = DocIds.joined([store.passages.names])
    scores, rows = ordered(scores, rows, depth, documents)
    method = {"name": "exact search", "method": "late interaction", "model": model.name, "depth": depth}
    header = describe(given.system, collection=given.collection, split=given.asked.split, retrieval=[method])
    write_run(output, RunMatrices.chosen(names, documents, rows, scores), header)
    return {"queries": len(names), "passages": passages}


@torch.no_grad()
def best(
    scorer: LateInteractionScorer, queries: np.ndarray, passages: int, wanted: int
) -> tuple[np.ndarray, np.ndarray]:
    """The largest scores of each query and the passages that have them, [queries, at most ``wanted``], best first.

    Args:
        queries: rows of the store, [n].
        passages: how many the store has.
    """
    asked, device = scorer.queries(queries), scorer.device.type
    parts = [np.arange(first, min(first + TOGETHER, len(queries))) for first in range(0, len(queries), TOGETHER)]
    groups = [[asked.padded(few) for few in np.array_split(part, -(-len(part) // QUERIES[device]))] for part in parts]
    kept = [BEST[device](min(wanted, passages)) for _ in parts]
    progress = Progress("comparing", "passages", passages)
    for first in range(0, passages, BLOCK):
        rows = np.arange(first, min(first + BLOCK, passages))
        block = scorer.passages(rows).padded(np.arange(len(rows)))
        for group, found in zip(groups, kept, strict=True):
            found.add(torch.cat([max_sim(*few, *block) for few in group]).float(), first)
        progress.more(len(rows))
    hits = [tuple(each.cpu().numpy() for each in found.found()) for found in kept]
    scores, places = (np.concatenate(side) for side in zip(*hits, strict=True))
    return scores, places

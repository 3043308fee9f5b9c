"""A whole collection ranked by a model with several vectors a text: ColBERT end to end, ME-BERT.

Every passage is embedded once, a block at a time, and compared with all queries. This is exact; the papers look for the
nearest tokens first, in an index that holds each of them.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from encore.data.collection import Collection, topics
from encore.data.rankings import RunMatrices
from encore.data.runs import describe, write_run
from encore.data.tokens import TokenStore
from encore.errors import EncoreError
from encore.finetuning.scoring import LateInteractionScorer, open_scorer
from encore.models.late_interaction import max_sim
from encore.retrieval.dense import MOST, SPARE, ordered
from encore.retrieval.ranking import BEST
from encore.storage.document_ids import DocIds
from encore.storage.progress import Progress
from encore.training import machine

BLOCK = 2048  # passages whose vectors are held at once
QUERIES = {"cpu": 4, "cuda": 32}  # that are compared with a block at once
TOGETHER = 64  # queries whose scores are ranked together


def answer_by_tokens(spec: dict[str, Any], model: Path, tokens: Path, collection: Path, output: Path) -> dict[str, int]:
    """Rank all passages for the queries of a split, write the run, and return its counts.

    Args:
        spec: ``split``, ``queries`` and ``sample`` of it, ``depth``, ``numerics``, and ``system``, the name of the run.
    """
    store, numerics = TokenStore(tokens), spec["numerics"]
    names = topics(Collection(collection), spec["split"], queries=spec["queries"], sample=spec["sample"])
    device = machine.prepare(numerics)
    with machine.precision(numerics, device):
        scorer = open_scorer(model, store).to(device)
        if not isinstance(scorer, LateInteractionScorer):
            raise EncoreError(f"{model} has no vectors of tokens to rank a whole collection by; name a `first` stage")
        depth, queries, passages = spec["depth"], store.queries.names.rows(names), len(store.passages)
        wanted = depth + SPARE
        scores, rows = best(scorer, queries, passages, wanted)
        while wanted < min(passages, MOST * depth) and (scores[:, depth - 1] == scores[:, -1]).any():  # a cut tie
            wanted *= 4
            scores, rows = best(scorer, queries, passages, wanted)
    documents = DocIds.joined([store.passages.names])
    places = documents.places()
    scores, rows = ordered(scores, rows, depth, places)
    method = {"name": "exact search", "method": "late interaction", "model": model.name, "depth": depth}
    header = describe(spec["system"], collection=spec["collection"], split=spec["split"], retrieval=[method])
    write_run(output, RunMatrices.chosen(names, documents, places, rows, scores), header)
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

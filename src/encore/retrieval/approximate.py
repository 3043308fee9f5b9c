"""Search in an index of a named type, and how much of the exact answer it finds.

Ties are completed and ordered as in exact search. Each query is asked for by itself: how far it searches, and so what
it finds, must not depend on its neighbours in a batch.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np

from encore.data.rankings import Ranking, Run, rank
from encore.data.runs import describe, read_run, write_run
from encore.data.tokens import TokenStore
from encore.retrieval import lists_on_gpu
from encore.retrieval.dense import MOST, SPARE, Shard, embedded, faiss_speed, open_shards, opened

FAISS_NAMES = {"ef_search": "efSearch", "nprobe": "nprobe"}
CUTS = (10, 100, 1000)  # of the exact answer


def answer_from_index(
    spec: dict[str, Any], model: Path, tokens: Path, collection: Path, index: Path, exact: Path, output: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Answer the queries of a split from one index, write the run, and return counts and recall, and how fast it was.

    Args:
        spec: as for exact search, and ``search``, how the index is searched.
        exact: the folder of the exact run over the same queries.
    """
    store = TokenStore(tokens)
    encoder = opened(spec, model, store)
    (held,) = open_shards([index], store.passages.names, encoder.dimension)
    names, queries = embedded(spec, encoder, store, collection)
    searched, started = ready(held, spec["search"]), time.monotonic()
    run = search_approximate(searched, names, queries, spec["depth"])
    device = "cuda" if isinstance(searched.index, lists_on_gpu.OnGpu) else "cpu"
    speed = faiss_speed(device, "queries", len(names), time.monotonic() - started)
    method = {"name": "index", "method": type(held.index).__name__, "depth": spec["depth"], **spec["search"]}
    header = describe(spec["system"], collection=collection.name, split=spec["split"], retrieval=[method])
    write_run(output, run, header)
    found = recall(run, read_run(exact), spec["depth"])
    print(f"{len(names)} queries; of the exact answers: {found}", flush=True)
    return {"queries": len(names), "passages": len(held.documents), "recall": found}, speed


def ready(held: Shard, how: dict[str, Any]) -> Shard:
    """An index set up to be searched as ``how`` says, on a GPU where FAISS can."""
    set_up(held.index, how)
    return Shard(lists_on_gpu.searched(held.index), held.documents)


def set_up(index: faiss.Index, how: dict[str, Any]) -> None:
    """Set how far an index searches: ``ef_search`` of a graph, ``nprobe`` of inverted lists."""
    for name, value in how.items():
        faiss.ParameterSpace().set_index_parameter(index, FAISS_NAMES[name], value)


def search_approximate(held: Shard, names: Sequence[str], queries: np.ndarray, depth: int) -> Run:
    """The best ``depth`` documents of each query that the index finds, by score, then by descending document id.

    Args:
        names: query ids.
        queries: float32 [queries, dimension], in the order of ``names``.
    """
    rows = np.ascontiguousarray(queries)
    return {name: one(held, rows[place : place + 1], depth) for place, name in enumerate(names)}


def one(held: Shard, query: np.ndarray, depth: int) -> Ranking:
    """The ranking that the index finds for one query, float32 [1, dimension]."""
    wanted = depth + SPARE
    while True:
        scores, rows = (found[0] for found in held.index.search(query, min(wanted, len(held.documents))))
        found = rows >= 0  # an index may find fewer than it is asked for
        ranking = rank(held.documents.take(rows[found]), scores[found], depth)
        # FAISS keeps any members of a tie at its last rank; if that tie reaches into the answer, ask further.
        cut = len(rows) == wanted and found.all() and scores[-1] == ranking.scores[-1]
        if not cut or wanted > MOST * depth:
            return ranking
        wanted *= 4


def recall(run: Run, exact: Run, depth: int) -> dict[str, float]:
    """Share of the exact answer's first documents that are among as many of the run's, in the mean over queries.

    By ``recall@<cut>``: at 10, 100 and 1,000, as far as the runs are that deep.
    """
    found = {}
    for cut in (cut for cut in CUTS if cut <= depth):
        shares = [
            len({*answered.documents[:cut]} & {*run[query].documents[:cut]}) / len(answered.documents[:cut])
            for query, answered in exact.items()
        ]
        found[f"recall@{cut}"] = round(float(np.mean(shares)), 6)
    return found

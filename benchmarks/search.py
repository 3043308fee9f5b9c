"""Exact search next to FAISS and to the plain product in torch, on the processor; see README.md."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Callable
from typing import Any

from encore.storage.program import run

import faiss
import numpy as np
import torch
from harness import comparison, figures, machine, record

from encore.data.rankings import RunMatrices
from encore.errors import EncoreError
from encore.retrieval.dense import Searcher, Shard
from encore.storage.document_ids import DocIds

OURS, FAISS, PLAIN = "Encore", "FAISS, IndexFlatIP", "torch, one product and topk"
APART = 1e-5  # that two scores at one rank may be, as a share of the best
FASTER = 0.95


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    before = machine.load()
    generator = np.random.default_rng(0)
    passages, queries = (
        generator.standard_normal((count, options.dimension), dtype=np.float32)
        for count in (options.passages, options.queries)
    )
    index = faiss.IndexFlatIP(options.dimension)
    index.add(passages)
    shard = Shard(index, DocIds.of(f"{row:08d}" for row in range(options.passages)))
    ways: dict[str, Callable[[], Any]] = {
        FAISS: lambda: index.search(queries, options.depth)[1],
        PLAIN: lambda: _plain(passages, queries, options.depth),
        OURS: lambda: _ours(shard, queries, options.depth),
    }
    found, seconds = comparison.in_turns(ways, options.turns)
    rankings = {**found, OURS: shard.documents.rows(list(found[OURS].documents))[found[OURS].rows]}
    apart = max(_apart(passages, queries, rankings[FAISS], rankings[name]) for name in (PLAIN, OURS))
    if apart > APART:
        raise EncoreError(f"scores at one rank are {apart:g} of the best apart; report it as a bug")
    rows = comparison.rows(seconds, options.queries, "queries", base=FAISS)
    operations = 2.0 * options.passages * options.dimension * options.queries
    rows = [row | {"gflop_per_second": figures.rounded(operations / row["cpu_seconds"] / 1e9)} for row in rows]
    contents: dict[str, Any] = {
        "setting": {name: getattr(options, name) for name in ("passages", "dimension", "queries", "depth", "turns")},
        "agreement": f"in float64, scores at every rank are at most {apart:.0e} of the best apart",
        "rows": rows,
        "goals": [
            figures.goal("exact search, speed relative to FAISS's IndexFlatIP", seconds[FAISS] / seconds[OURS], FASTER)
        ],
    }
    record.write(options.output, options.name, contents, before, ("faiss-cpu",))
    print("\n".join([*record.table(rows), contents["agreement"]]))


def _plain(passages: np.ndarray, queries: np.ndarray, depth: int) -> np.ndarray:
    scores = torch.from_numpy(queries) @ torch.from_numpy(passages).T
    return scores.topk(depth).indices.numpy()


def _ours(shard: Shard, queries: np.ndarray, depth: int) -> RunMatrices:
    """All that the stage ``search`` does with vectors: ties are ordered, and documents and queries have names."""
    with contextlib.redirect_stdout(io.StringIO()):  # the rate
        return Searcher([shard]).search(list(map(str, range(len(queries)))), queries, depth)


def _apart(passages: np.ndarray, queries: np.ndarray, one: np.ndarray, other: np.ndarray) -> float:
    """How far exact scores at one rank of two rankings [queries, depth] are apart at most, as a share of the best."""
    most = 0.0
    for query, *rows in zip(queries.astype(np.float64), one, other, strict=True):
        first, second = (passages[each] @ query for each in rows)
        most = max(most, float(np.abs(first - second).max() / first.max()))
    return most


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--passages", type=int, default=50_000)
    parser.add_argument("--dimension", type=int, default=768)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=5, help="of which the best counts")
    record.add_flags(parser, "search")
    return parser.parse_args()


if __name__ == "__main__":
    run(main)

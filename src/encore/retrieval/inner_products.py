"""The passages with the largest inner products, exactly, on the device of a job.

Tiles of vectors (``tiles.py``) are the outer loop and batches of queries the inner one, so a pass reads each vector
once. Products are in fp32, whatever models compute in.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from encore.retrieval.ranking import BEST, Best
from encore.retrieval.tiles import TILE, Tiles
from encore.storage.progress import Progress

BATCH = {"cpu": 2048, "cuda": 4096}  # queries in one product; a constant, since rounding may depend on it
GAP = {"cpu": 16, "cuda": 0}  # columns between two queries' scores: a power of two apart, they share a few cache lines
LISTS = 2 << 30  # bytes of the best so far of all queries in a pass; 502,939 queries, of each 232, take 1.4 GB
HIT = 12  # bytes of one of them
RESERVE = 2.0  # times the scores of a batch: what they and their ranking take of a GPU's memory
Found = tuple[np.ndarray, np.ndarray]


class ExactSearch:
    """Finds the best vectors of shards, float32 or float16 [passages, dimension] each."""

    def __init__(self, shards: Sequence[np.ndarray], device: torch.device) -> None:
        self.tiles = Tiles(shards, device, spare(device))
        self.memory = free(device)

    def best(self, queries: torch.Tensor, wanted: int, kept: np.ndarray | None = None) -> Found:
        """Scores and rows [queries, wanted] of the best vectors, best first.

        Which of equal scores are found at the last rank is arbitrary.

        Args:
            queries: float32 [queries, dimension], on the device.
            wanted: how many, at most as many as there are.
            kept: which vectors are searched [passages]; all, if it is not given.
        """
        scores, rows = zip(*self.by_batch(queries, wanted, kept), strict=True)
        return np.concatenate(scores), np.concatenate(rows)

    def by_batch(self, queries: torch.Tensor, wanted: int, kept: np.ndarray | None = None) -> Iterator[Found]:
        """The results of ``best``, for each ``BATCH`` of queries."""
        for batches in passes(queries, wanted):
            with without_tf32():
                found = ranked(self.tiles, batches, wanted, kept, self.memory)
            for best in found:
                scores, rows = best.found()
                yield scores.cpu().numpy(), rows.cpu().numpy()


def passes(queries: torch.Tensor, wanted: int) -> Iterator[Sequence[torch.Tensor]]:
    """The batches of each pass: of as many queries as the memory for the best so far suffices for."""
    size = BATCH[queries.device.type]
    batches = max(1, LISTS // (HIT * wanted * size))
    for some in queries.split(batches * size):
        yield some.split(size)


def ranked(
    tiles: Tiles, batches: Sequence[torch.Tensor], wanted: int, kept: np.ndarray | None, memory: int
) -> list[Best]:
    """The best of each batch of queries [queries, dimension], in one pass over all tiles.

    ``memory``: bytes of a GPU that are free for it.
    """
    device, most = batches[0].device, len(batches[0])
    found: list[Best] = [BEST[device.type](wanted) for _ in batches]
    out = None if kept is None else torch.from_numpy(~kept).to(device)
    scores = torch.empty(0, device=device)
    progress = Progress(f"{sum(map(len, batches)):,} queries, {tiles.vectors:,} passages", "compared")
    for first, real, vectors in tiles.stretches(held_in(memory, most)):
        columns = len(vectors) + GAP[device.type]
        if len(scores) < most * columns:
            scores = _memory(most * columns, device)
        for batch, best in zip(batches, found, strict=True):
            into = scores[: len(batch) * columns].view(len(batch), columns)
            parts = into[:, : len(vectors)].split(tiles.size, 1)
            for tile, part in zip(vectors.split(tiles.size), parts, strict=True):
                torch.mm(batch, tile.T, out=part)
            into[:, real:] = -torch.inf
            if out is not None:
                into[:, :real].masked_fill_(out[first : first + real], -torch.inf)
            best.add(into, first)
        progress.more(real)
    return found


def _memory(count: int, device: torch.device) -> torch.Tensor:
    """Memory for float32 [count]. NumPy asks the system for large pages, which it hands out many times as fast."""
    if device.type == "cpu":
        return torch.from_numpy(np.empty(count, np.float32))
    return torch.empty(count, device=device)


@contextmanager
def without_tf32() -> Iterator[None]:
    """Products on a GPU are in fp32, also where models compute in TF32."""
    cublas = torch.backends.cuda.matmul
    before, cublas.allow_tf32 = cublas.allow_tf32, False
    try:
        yield
    finally:
        cublas.allow_tf32 = before


def held_in(memory: int, queries: int) -> int:
    """The tiles whose scores for so many queries are ranked together, in half of a GPU's free bytes; at least one."""
    return max(1, int(memory / 2 / ranking_bytes_of_tile(queries)))


def ranking_bytes_of_tile(queries: int) -> float:
    """The bytes of a GPU's memory that one tile's fp32 scores for so many queries, and their ranking, take."""
    return RESERVE * queries * TILE["cuda"] * 4


def spare(device: torch.device) -> float:
    """The bytes of a GPU's memory that a search takes next to its tiles, at least."""
    return ranking_bytes_of_tile(BATCH["cuda"]) + LISTS if device.type == "cuda" else 0


def free(device: torch.device) -> int:
    """The bytes of a GPU's memory that are free for scores when its tiles have been read."""
    if device.type != "cuda":
        return 0
    torch.cuda.empty_cache()
    return max(0, int(torch.cuda.mem_get_info(device)[0]) - LISTS)

"""The passages with the largest inner products, exactly, on the device of a job.

Vectors are read in tiles of a fixed shape, the last one padded with zeros, so a score has the same bytes wherever its
tile begins. On a GPU they stay there where they fit, otherwise they are read once for each batch of queries. Products
are in fp32, whatever models compute in. ``rescored.py`` takes cheaper ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch

TILE = {"cpu": 1024, "cuda": 32_768}  # vectors in one product
HELD = {"cpu": 8, "cuda": 4}  # tiles whose scores are ranked together, at most
BATCH = {"cpu": 2048, "cuda": 16_384}  # queries in one product; a constant, since rounding may depend on it
RESERVE = 3.0  # times the scores of a batch: what they and their ranking take of a GPU's memory
Multiply = Callable[[torch.Tensor, torch.Tensor], object]  # writes the products with a tile into [queries, size]
_ROW, _SIGN = np.uint64(0xFFFF_FFFF), np.uint32(0x8000_0000)  # bits: of a hit, its row; of a float, its sign


class Tiles:
    """Vectors, float32 or float16 [passages, dimension], in tiles of float32 on a device.

    An array that is mapped is never held whole.
    """

    def __init__(self, vectors: np.ndarray, device: torch.device) -> None:
        self.vectors, self.device = vectors, device
        self.size, self.held = TILE[device.type], HELD[device.type]
        if device.type == "cuda":
            self.held = held_in(torch.cuda.mem_get_info(device)[0])
        self._resident = list(self._read()) if self._fits() else None

    def best(self, queries: torch.Tensor, wanted: int, kept: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Scores and rows [queries, wanted] of the best vectors, best first.

        Which of equal scores are found at the last rank is arbitrary.

        Args:
            queries: float32 [queries, dimension], on the device; at most ``BATCH``.
            wanted: how many, at most as many as there are.
            kept: which vectors are searched [passages]; all, if it is not given.
        """
        with matrix_units(tf32=False):
            return self.ranked(lambda tile, into: torch.mm(queries, tile.T, out=into), len(queries), wanted, kept)

    def ranked(
        self, multiply: Multiply, queries: int, wanted: int, kept: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The same by any products, for so many queries."""
        found = BEST[self.device.type](wanted)
        scores = torch.empty(queries, self.held * self.size, device=self.device)
        begin, filled = 0, 0
        for number, tile in enumerate(self.each()):
            first = number * self.size
            into = scores[:, filled : filled + self.size]
            multiply(tile, into)
            into[:, len(self.vectors) - first :] = -torch.inf  # the padding of the last tile
            if kept is not None:
                out = torch.from_numpy(~kept[first : first + self.size]).to(self.device)
                into[:, : len(out)].masked_fill_(out, -torch.inf)
            filled += self.size
            if filled == scores.shape[1]:
                found.add(scores, begin)
                begin, filled = begin + filled, 0
        if filled:
            found.add(scores[:, :filled], begin)
        return found.found()

    def each(self) -> Iterable[torch.Tensor]:
        """Each tile [size, dimension] in order; on a CPU it holds until the next one is taken."""
        return self._resident if self._resident is not None else self._read()

    def _read(self) -> Iterator[torch.Tensor]:
        """Each tile [size, dimension]. On a CPU they share their memory, unlike on a GPU, where they may stay."""
        tile = torch.zeros(self.size, self.vectors.shape[1])
        if self.device.type == "cuda":
            tile = tile.pin_memory()  # from which a GPU copies several times as fast
        for first in range(0, len(self.vectors), self.size):
            part = np.asarray(self.vectors[first : first + self.size])
            tile.numpy()[: len(part)] = part
            tile[len(part) :] = 0
            yield tile if self.device.type == "cpu" else tile.to(self.device)

    def _fits(self) -> bool:
        """Whether all vectors fit into the GPU's free memory, next to the scores of a batch."""
        if self.device.type != "cuda":
            return False
        free, _ = torch.cuda.mem_get_info(self.device)
        tiles = -(-len(self.vectors) // self.size)
        return tiles * self.size * self.vectors.shape[1] * 4 + self.held * ranking_bytes_of_tile() < free


@contextmanager
def matrix_units(tf32: bool) -> Iterator[None]:
    """On a GPU: whether products of fp32 are taken in TF32; those of fp16 are summed in fp32 throughout."""
    cublas = torch.backends.cuda.matmul
    before = cublas.allow_tf32, cublas.allow_fp16_reduced_precision_reduction
    cublas.allow_tf32, cublas.allow_fp16_reduced_precision_reduction = tf32, False
    try:
        yield
    finally:
        cublas.allow_tf32, cublas.allow_fp16_reduced_precision_reduction = before


def held_in(free: int) -> int:
    """The tiles whose scores are ranked together on a GPU: what half of its ``free`` bytes can hold, at least one."""
    return max(1, min(HELD["cuda"], int(free / 2 / ranking_bytes_of_tile())))


def ranking_bytes_of_tile() -> float:
    """The bytes of a GPU's memory that one tile's fp32 scores for a whole batch of queries, and their ranking, take."""
    return RESERVE * BATCH["cuda"] * TILE["cuda"] * 4


class _BestOnGpu:
    """The best ``wanted`` of all scores that were added, best first, and their rows."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.scores, self.rows = torch.empty(0), torch.empty(0, dtype=torch.int64)

    def add(self, scores: torch.Tensor, first: int) -> None:
        """Take up scores [queries, columns]; the first column is the row ``first``."""
        found, columns = scores.topk(min(self.wanted, scores.shape[1]))
        if len(self.scores):
            found = torch.cat([self.scores, found], 1)
            rows = torch.cat([self.rows, columns + first], 1)
            self.scores, order = found.topk(min(self.wanted, found.shape[1]))
            self.rows = rows.gather(1, order)
        else:
            self.scores, self.rows = found, columns + first

    def found(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores and rows [queries, wanted]."""
        return self.scores.cpu().numpy(), self.rows.cpu().numpy()


class _BestOnCpu:
    """The same in NumPy, whose comparison and partition are several times as fast as torch's on a CPU.

    A hit is one number, so that one partition orders scores with their rows: the score's bits, which order like floats,
    above those of the row. Zero is below every hit.
    """

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.hits = np.empty((0, 0), np.uint64)

    def add(self, scores: torch.Tensor, first: int) -> None:
        """Take up scores [queries, columns]; the first column is the row ``first``."""
        new = scores.numpy()
        if self.hits.shape[1] >= self.wanted:
            least = _scores(self.hits.min(axis=1))
        elif new.shape[1] > self.wanted:
            least = np.partition(new, -self.wanted, axis=1)[:, -self.wanted]
        else:
            least = np.full(len(new), -np.inf, np.float32)
        found = _hits_of(new, least, first)
        together = np.hstack([self.hits, found]) if len(self.hits) else found
        if (worse := together.shape[1] - self.wanted) > 0:
            together.partition(worse, axis=1)
            together = together[:, worse:]
        self.hits = together

    def found(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores and rows [queries, wanted]."""
        hits = np.sort(self.hits, axis=1)[:, ::-1]
        return _scores(hits), (hits & _ROW).astype(np.int64)


def _hits_of(scores: np.ndarray, least: np.ndarray, first: int) -> np.ndarray:
    """The hits among scores [queries, columns] from each query's ``least`` on, filled up with zeros."""
    chosen = scores >= least[:, None]
    counts = np.count_nonzero(chosen, axis=1)
    at = np.flatnonzero(chosen)
    rows = at + (first - scores.shape[1] * np.repeat(np.arange(len(scores)), counts))
    bits = scores.ravel()[at].view(np.uint32)
    ordered = np.where(bits & _SIGN, ~bits, bits | _SIGN)  # of negative floats the larger bits are the smaller number
    found = np.zeros((len(scores), counts.max()), np.uint64)
    found[np.arange(counts.max()) < counts[:, None]] = ordered.astype(np.uint64) << np.uint64(32) | rows.view(np.uint64)
    return found


def _scores(hits: np.ndarray) -> np.ndarray:
    """The scores of hits, of any shape."""
    ordered = (hits >> np.uint64(32)).astype(np.uint32)
    return np.where(ordered & _SIGN, ordered ^ _SIGN, ~ordered).view(np.float32)


BEST: dict[str, type[_BestOnCpu | _BestOnGpu]] = {"cpu": _BestOnCpu, "cuda": _BestOnGpu}

"""Exact search by cheaper products: of numbers rounded to TF32 or fp16, and their candidates scored again.

A query q and the passages p are rounded to q' and p', and q'.p' is summed in fp32. By Cauchy-Schwarz,

    |q.p - q'.p'| <= |q - q'| |p| + |q'| |p - p'|,

where |q - q'| and |p - p'| are measured, not bounded by the unit roundoff (2^-11 of either format), so what fp16 loses
below 2^-14 or above 65504 is counted too. Products of two numbers of 11 bits are exact in fp32. Summing d of them adds
at most d 2^-22 |q'| |p'|: a matrix unit aligns the terms of a block to the largest and truncates them at 24 bits, which
is d (1 + 1/4) 2^-23 for blocks of four, and fp32's own rounding is below that. What underflows, d 2^-100 covers.

Let E be the largest such bound over the tiles, and s(q, p) the inner product in float64. A passage whose approximate
score is below the ``wanted``-th best one less 2 E has a smaller s than each of those ``wanted``. So all others are
candidates; each gets s, rounded to fp32, and the best of them are the best of all passages by that score.

The score is summed in one order, pair by pair, by operations that IEEE 754 defines. So scores and rankings have the
same bytes for any tiles, shards, batches, threads and devices, and for TF32 as for fp16. Those of fp32's products
differ from them by that way's own rounding, and so do the ranks of passages that are closer than it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from encore.errors import EncoreError
from encore.retrieval.products import Tiles, matrix_units

ROOM = 4096  # candidates beyond the wanted ones that are held
PAIRS = 1 << 15  # of a query and a candidate that are scored at once
LARGEST = 65504.0  # of fp16
SUMMED, UNDERFLOW = 2.0**-22, 2.0**-100  # errors of a sum's term: of the product of both norms, and of itself


def tiles_for(vectors: np.ndarray, device: torch.device, products: str) -> Tiles:
    """Vectors [passages, dimension] ready to be searched by products in ``fp32``, ``tf32`` or ``fp16``.

    Raises:
        EncoreError: another precision.
    """
    if products == "fp32":
        return Tiles(vectors, device)
    if products not in ROUND:
        raise EncoreError(f"products of exact search in {products!r} are unknown; use one of fp32, {', '.join(ROUND)}")
    return Rescored(vectors, device, products)


class Rescored(Tiles):
    """Tiles whose best vectors are found among candidates by rounded products, on a CPU as a GPU would.

    A query with more candidates than are held, as of a collapsed model, gets fp32's products instead: its candidates
    are the vectors that these rank first, as many as are held, and ``in_fp32`` counts it. That ranking is as good as
    fp32's.
    """

    def __init__(self, vectors: np.ndarray, device: torch.device, precision: str) -> None:
        super().__init__(vectors, device)
        self.precision, self.in_fp32 = precision, 0
        # A power of two, which keeps numbers of fp16 whole, brings those of the first tile, and so most, below 1.
        self.scale = 2.0 ** -math.frexp(float(np.abs(vectors[: self.size]).max(initial=0)))[1]

    def best(self, queries: torch.Tensor, wanted: int, kept: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Scores and rows [queries, wanted] of the best vectors, best first; arguments as of ``Tiles.best``."""
        rows, candidates = self._candidates(queries, wanted, kept)
        best, order = self._scores(queries, rows, candidates).topk(wanted)
        return best.cpu().numpy(), rows.gather(1, order).cpu().numpy()

    def _candidates(
        self, queries: torch.Tensor, wanted: int, kept: np.ndarray | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of the best vectors by approximate scores [queries, held], and which of them are candidates."""
        searched = len(self.vectors) if kept is None else int(kept.sum())
        held = min(wanted + ROOM, searched)
        products = RoundedProducts(queries, self.precision, self.scale)
        near, rows = map(self._here, self.ranked(products, len(queries), held, kept))
        least = near[:, wanted - 1].double() - 2 * products.error
        candidates = near >= least[:, None]
        more = ~(near[:, -1] < least)
        if held < searched and more.any():
            _, again = super().best(queries[more], held, kept)
            rows[more], candidates[more] = self._here(again), True
            self.in_fp32 += int(more.sum())
        return rows, candidates

    def _scores(self, queries: torch.Tensor, rows: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        """The scores of candidates, float32 [queries, held], and minus infinity elsewhere."""
        scores = torch.full(rows.shape, -torch.inf, device=self.device)
        order = rows[candidates].argsort()
        pairs, found = candidates.nonzero()[order], rows[candidates][order]
        tiles = -(-len(self.vectors) // self.size)
        counts = torch.bincount(found // self.size, minlength=tiles).tolist()
        for tile, some, places in zip(self.each(), pairs.split(counts), (found % self.size).split(counts), strict=True):
            for part, place in zip(some.split(PAIRS), places.split(PAIRS), strict=True):
                query, column = part.T
                scores[query, column] = inner(queries[query], tile[place])
        return scores

    def _here(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


class RoundedProducts:
    """Products of queries and tiles of rounded numbers, and how wrong they may be.

    Queries are divided by their largest number, passages multiplied by ``scale``, so both are around 1.

    ``error``: float64 [queries], the bound E over all tiles so far, in these units.
    """

    def __init__(self, queries: torch.Tensor, precision: str, scale: float) -> None:
        self.precision, self.scale = precision, scale
        exact = queries.double()
        largest = exact.abs().amax(1, keepdim=True).clamp(min=2.0**-149)
        self.queries, self.lost, self.norms = _rounded(exact / largest, precision)
        self.error = torch.zeros_like(self.norms)

    def __call__(self, tile: torch.Tensor, into: torch.Tensor) -> None:
        """Write the products with a tile, float32 [size, dimension], into float32 [queries, size]."""
        rounded, lost, norms = _rounded(tile.double() * self.scale, self.precision)
        gap, norm, dimension = lost.max(), norms.max(), tile.shape[1]
        error = self.lost * (norm + gap) + self.norms * (gap + dimension * SUMMED * norm) + dimension * UNDERFLOW
        self.error = torch.maximum(self.error, error)
        with matrix_units(tf32=True):
            if rounded.dtype == torch.float16:
                torch.mm(self.queries, rounded.T, out_dtype=torch.float32, out=into)
            else:
                torch.mm(self.queries, rounded.T, out=into)


def inner(queries: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """The inner product of each pair of rows, float32 [pairs, dimension] both: float32 [pairs].

    Products are exact in float64. Their sum halves the terms until one is left, adding the second half to the first.
    """
    terms = queries.double() * vectors.double()
    while (width := terms.shape[1]) > 1:
        half = width // 2
        terms = torch.cat([terms[:, :half] + terms[:, half : 2 * half], terms[:, 2 * half :]], 1)
    return terms[:, 0].float()


def _rounded(exact: torch.Tensor, precision: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows of float64 rounded; of each row the norm of what rounding took away, and its own after it, in float64."""
    rounded = ROUND[precision](exact.clamp(-LARGEST, LARGEST))
    return rounded, (exact - rounded.double()).norm(dim=1), rounded.double().norm(dim=1)


def _to_tf32(exact: torch.Tensor) -> torch.Tensor:
    """Numbers of 11 significant bits, as float32; a matrix unit leaves them as they are."""
    return ((exact.float().view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)


def _to_fp16(exact: torch.Tensor) -> torch.Tensor:
    """Numbers of fp16; on a CPU, which multiplies them slowly, as float32."""
    return exact.half() if exact.is_cuda else exact.half().float()


ROUND: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"tf32": _to_tf32, "fp16": _to_fp16}

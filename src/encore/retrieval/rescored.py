"""Exact search by cheaper products: of numbers rounded to TF32 or fp16, and their candidates scored again.

A query q and the passages p are rounded to q' and p', and q'.p' is summed in fp32. By Cauchy-Schwarz,

    |q.p - q'.p'| <= |q - q'| |p| + |q'| |p - p'|,

where |q - q'| and |p - p'| are measured, not bounded by the unit roundoff (2^-11 of either format), so what fp16 loses
below 2^-14 or above 65504 is counted too. Products of two numbers of 11 bits are exact in fp32. Summing d of them adds
at most d 2^-22 |q'| |p'|: a matrix unit aligns the terms of a block to the largest and truncates them at 24 bits, which
is d (1 + 1/4) 2^-23 for blocks of four, and fp32's own rounding is below that. What underflows, d 2^-100 covers.

Let E be this bound with the largest |p'| and |p - p'| of all, and s(q, p) the inner product in float64. A passage whose
approximate score is below the ``wanted``-th best one less 2 E has a smaller s than each of those ``wanted``. So all
others are candidates; each gets s, rounded to fp32, and the best of them are the best of all passages by that score.

The score is summed in one order, pair by pair, by operations that IEEE 754 defines. So scores and rankings have the
same bytes for any tiles, shards, batches, threads and devices, and for TF32 as for fp16. Those of fp32's products
differ from them by that way's own rounding, and so do the ranks of passages that are closer than it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from encore.errors import EncoreError
from encore.retrieval.inner_products import ExactSearch, Found, Fp32Search, matrix_units, passes, ranked, spare
from encore.retrieval.tiles import TILE, Tiles

ROOM = 4096  # candidates beyond the wanted ones that are held
PAIRS = 1 << 15  # of a query and a candidate that are scored at once
LARGEST = 65504.0  # of fp16
SUMMED, UNDERFLOW = 2.0**-22, 2.0**-100  # errors of a sum's term: of the product of both norms, and of itself


def search_in(products: str, shards: Sequence[np.ndarray], device: torch.device) -> "Fp32Search | RoundedSearch":
    """A search of shards [passages, dimension] each, by products in ``fp32``, ``tf32`` or ``fp16``."""
    if products == "fp32":
        return Fp32Search(shards, device)
    if products not in ROUND:
        raise EncoreError(f"products of exact search in {products!r} are unknown; use one of fp32, {', '.join(ROUND)}")
    return RoundedSearch(shards, device, products)


class RoundedSearch(ExactSearch):
    """Finds the best vectors among candidates by rounded products, on a CPU as a GPU would.

    On a GPU rounded tiles stay first, those of fp32 next to them where they fit. Otherwise candidates are scored from
    the arrays.

    A query with more candidates than are held, as of a collapsed model, gets fp32's products instead: its candidates
    are the vectors that these rank first, as many as are held, and ``in_fp32`` counts it. That ranking is as good as
    fp32's.
    """

    def __init__(self, shards: Sequence[np.ndarray], device: torch.device, precision: str) -> None:
        # A power of two, which keeps numbers of fp16 whole, brings those of one tile, and so most, below 1.
        largest = float(np.abs(max(shards, key=len)[: TILE[device.type]]).max(initial=0))
        self.rounding = Rounding(precision, 2.0 ** -math.frexp(largest)[1], device)
        self.tiles = Tiles(shards, device, spare(device), self.rounding, self.rounding.dtype)
        self.exact, self.in_fp32 = Fp32Search(shards, device), 0

    def by_batch(self, queries: torch.Tensor, wanted: int, kept: np.ndarray | None = None) -> Iterator[Found]:
        """As of ``ExactSearch``."""
        searched = sum(map(len, self.tiles.shards)) if kept is None else int(kept.sum())
        held = min(wanted + ROOM, searched)
        for batches in passes(queries, held):
            rounded = [RoundedQueries.of(batch, self.rounding.precision) for batch in batches]
            numbers = [each.numbers for each in rounded]
            with matrix_units(tf32=True):
                found = ranked(self.tiles, multiply, numbers, held, kept, self.exact.memory)
            for batch, its, best in zip(batches, rounded, found, strict=True):
                near, rows = best.found()
                least = near[:, wanted - 1].double() - 2 * self.rounding.error(its)
                candidates = near >= least[:, None]
                more = ~(near[:, -1] < least)
                if held < searched and more.any():
                    _, again = self.exact.best(batch[more], held, kept)
                    rows[more], candidates[more] = torch.from_numpy(again).to(rows.device), True
                    self.in_fp32 += int(more.sum())
                scores, order = self._scores(batch, rows, candidates).topk(wanted)
                yield scores.cpu().numpy(), rows.gather(1, order).cpu().numpy()

    def _scores(self, queries: torch.Tensor, rows: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
        """The scores of candidates, float32 [queries, held], and minus infinity elsewhere."""
        scores = torch.full(rows.shape, -torch.inf, device=rows.device)
        pairs = candidates.nonzero()
        found, order = rows[tuple(pairs.T)].sort()
        pairs = pairs[order]
        for part, of_part in zip(pairs.split(PAIRS), found.split(PAIRS), strict=True):
            query, column = part.T
            scores[query, column] = inner(queries[query], self.exact.tiles.at(of_part))
        return scores


class Rounding:
    """Rounds tiles, multiplied by ``scale`` so that they are around 1, and notes how wrong products with them may be.

    ``norm``, ``gap``: the largest |p'| and |p - p'| so far, in these units.
    """

    def __init__(self, precision: str, scale: float, device: torch.device) -> None:
        self.precision, self.scale, self.dimension = precision, scale, 0
        self.dtype = ROUND[precision](torch.empty(0, dtype=torch.float64, device=device)).dtype
        self.norm = self.gap = torch.zeros((), dtype=torch.float64, device=device)

    def __call__(self, tile: torch.Tensor) -> torch.Tensor:
        """Rounded vectors [size, dimension]."""
        rounded, lost, norms = _rounded(tile.double() * self.scale, self.precision)
        self.dimension = tile.shape[1]
        self.norm, self.gap = torch.maximum(self.norm, norms.max()), torch.maximum(self.gap, lost.max())
        return rounded

    def error(self, queries: "RoundedQueries") -> torch.Tensor:
        """The bound E, float64 [queries]."""
        summed = self.dimension * SUMMED * self.norm
        return queries.lost * (self.norm + self.gap) + queries.norms * (self.gap + summed) + self.dimension * UNDERFLOW


class RoundedQueries(NamedTuple):
    """Queries divided by their largest number and rounded, |q - q'|, and |q'|."""

    numbers: torch.Tensor
    lost: torch.Tensor
    norms: torch.Tensor

    @classmethod
    def of(cls, queries: torch.Tensor, precision: str) -> "RoundedQueries":
        exact = queries.double()
        return cls(*_rounded(exact / exact.abs().amax(1, keepdim=True).clamp(min=2.0**-149), precision))


def multiply(queries: torch.Tensor, tile: torch.Tensor, into: torch.Tensor) -> None:
    """Write the products of rounded queries with a rounded tile [size, dimension] into float32 [queries, size]."""
    if tile.dtype == torch.float16:
        torch.mm(queries, tile.T, out_dtype=torch.float32, out=into)
    else:
        torch.mm(queries, tile.T, out=into)


def inner(queries: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """The inner product of each pair of rows, float32 [pairs, dimension] both: float32 [pairs].

    Products are exact in float64. Their sum halves the terms until one is left, adding the second half to the first.
    """
    terms = queries.double() * vectors.double()
    while (width := terms.shape[1]) > 1:
        half = width // 2
        added = terms[:, :half] + terms[:, half : 2 * half]
        terms = torch.cat([added, terms[:, -1:]], 1) if width % 2 else added
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

"""The best of scores that come one part after the other, and their rows."""

import math

import numpy as np
import torch

_ROW, _SIGN = np.uint64(0xFFFF_FFFF), np.int32(-(1 << 31))  # bits: of a hit, its row; of a float, its sign
TOGETHER = 64  # queries whose scores are ranked together on a CPU, whose cache holds all that this writes


class BestOnGpu:
    """The best ``wanted`` of all scores that were added; which of equal ones, at the last rank, is arbitrary.

    The host knows the shapes of all operations, so that it never waits for the device.
    """

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.scores, self.rows = torch.empty(0), torch.empty(0, dtype=torch.int64)

    def add(self, scores: torch.Tensor, first: int) -> None:
        """Add scores, float32 [queries, columns]; the first column is the row ``first``."""
        found, columns = largest(scores, min(self.wanted, scores.shape[1]))
        rows = columns + first
        if len(self.scores):
            found, rows = torch.cat([self.scores, found], 1), torch.cat([self.rows, rows], 1)
        if found.shape[1] > self.wanted:
            found, order = found.topk(self.wanted, sorted=False)
            rows = rows.gather(1, order)
        self.scores, self.rows = found, rows

    def found(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Scores and rows [queries, wanted], best first."""
        scores, order = self.scores.sort(descending=True)
        return scores, self.rows.gather(1, order)


def largest(scores: torch.Tensor, wanted: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest of scores [queries, columns], and their columns, [queries, wanted] both, in no order.

    Columns are cut into parts and laid over one another. The largest scores are in the ``wanted`` piles with the
    largest maxima, so one fast pass over all, and the selection, which reads about six times, from few.
    """
    parts = math.gcd(scores.shape[1], 1 << int(math.log2(scores.shape[1] / wanted) / 2))
    if parts == 1:
        best = scores.topk(wanted, sorted=False)
        return best.values, best.indices
    folded = scores.unflatten(1, (parts, -1))  # [queries, parts, piles]
    piles = folded.amax(1).topk(wanted, sorted=False).indices
    found = folded.gather(2, piles[:, None].expand(-1, parts, -1)).flatten(1)
    best = found.topk(wanted, sorted=False)
    part, pile = best.indices // wanted, piles.gather(1, best.indices % wanted)
    return best.values, part * folded.shape[2] + pile


class BestOnCpu:
    """The same in NumPy, whose comparison and partition are several times as fast as torch's on a CPU.

    A hit is one number, so that one partition orders scores with their rows: the score's bits, which order like floats,
    above those of the row. Zero is below every hit.
    """

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.hits: list[np.ndarray] = []  # of each ``TOGETHER`` queries

    def add(self, scores: torch.Tensor, first: int) -> None:
        parts = [part.numpy() for part in scores.split(TOGETHER)]
        before = self.hits or [np.empty((len(part), 0), np.uint64) for part in parts]
        self.hits = [self._better(hits, part, first) for hits, part in zip(before, parts, strict=True)]

    def found(self) -> tuple[torch.Tensor, torch.Tensor]:
        scores, rows = zip(*(unpacked(np.sort(hits, axis=1)[:, ::-1]) for hits in self.hits), strict=True)
        return torch.from_numpy(np.concatenate(scores)), torch.from_numpy(np.concatenate(rows))

    def _better(self, hits: np.ndarray, scores: np.ndarray, first: int) -> np.ndarray:
        """The best of hits [queries, hits] and scores [queries, columns]; of ``wanted`` ones the worst is first."""
        if hits.shape[1] == self.wanted:
            least = _scores(hits[:, 0])
        elif scores.shape[1] > self.wanted:
            least = np.partition(scores, -self.wanted, axis=1)[:, -self.wanted]
        else:
            least = np.full(len(scores), -np.inf, np.float32)
        together = np.hstack([hits, _hits_of(scores, least, first)])
        if (worse := together.shape[1] - self.wanted) < 0:
            return together
        together.partition(worse, axis=1)
        return together[:, worse:].copy()


def _hits_of(scores: np.ndarray, least: np.ndarray, first: int) -> np.ndarray:
    """The hits among scores [queries, columns] from each query's ``least`` on, filled up with zeros."""
    begins = np.arange(len(scores) + 1) * scores.shape[1]  # of each query among all scores
    at = np.flatnonzero(scores >= least[:, None])
    counts = np.diff(np.searchsorted(at, begins))
    return filled_up(packed(scores.ravel()[at], at + np.repeat(first - begins[:-1], counts)), counts)


def packed(scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Hits, uint64 [n], of scores float32 [n] and rows int64 [n], below 2^32."""
    bits = scores.view(np.int32)
    ordered = bits ^ (bits >> 31 | _SIGN)  # of negative floats, whose bits are all turned, the larger are the smaller
    hits = ordered.view(np.uint32).astype(np.uint64)
    hits <<= np.uint64(32)
    hits |= rows.view(np.uint64)
    return hits


def unpacked(hits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scores and the rows of hits, of any shape."""
    return _scores(hits), (hits & _ROW).view(np.int64)


def filled_up(hits: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Hits [n], of each query so many as ``counts`` [queries] says, as a matrix with zeros behind the shorter rows."""
    most = counts.max(initial=0)
    found = np.zeros((len(counts), most), np.uint64)
    found[np.arange(most) < counts[:, None]] = hits
    return found


def _scores(hits: np.ndarray) -> np.ndarray:
    """The scores of hits, of any shape."""
    ordered = (hits >> np.uint64(32)).astype(np.uint32).view(np.int32)
    return (ordered ^ (~ordered >> 31 | _SIGN)).view(np.float32)


Best = BestOnCpu | BestOnGpu
BEST: dict[str, type[Best]] = {"cpu": BestOnCpu, "cuda": BestOnGpu}

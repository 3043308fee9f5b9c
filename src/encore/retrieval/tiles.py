"""The vectors of shards on the device of a job, in tiles of a fixed shape.

The last tile of a shard is padded with zeros, so a product has the same bytes wherever its tile begins. On a GPU tiles
stay where they fit. Otherwise each pass reads them again, and while one is multiplied the next one is copied.
"""

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

import numpy as np
import torch

TILE = {"cpu": 1024, "cuda": 131_072}  # vectors in one product
HELD = {"cpu": 8, "cuda": 1}  # tiles that are read together


class Stretch(NamedTuple):
    """Tiles in a row: ``vectors`` [tiles x size, dimension], padded.

    ``real`` of them are not padding; the first one is ``first`` among those of all shards.
    """

    first: int
    real: int
    vectors: torch.Tensor


class Tiles:
    """Vectors of shards, float32 or float16 [passages, dimension] each, in tiles on a device.

    They are multiplied in float32. An array that is mapped is never held whole in the processor's memory.
    """

    def __init__(self, shards: Sequence[np.ndarray], device: torch.device, spare: float) -> None:
        """Read what stays on the device.

        Args:
            spare: bytes of a GPU's memory that have to stay free.
        """
        self.shards, self.device = shards, device
        self.size, self.dimension = TILE[device.type], shards[0].shape[1]
        self.vectors = sum(map(len, shards))
        self.resident = self._loaded() if self._fit(spare) else None

    def stretches(self, most: int) -> Iterator[Stretch]:
        """All tiles in order: where they stay, at most so many together. One holds until the next one is taken."""
        if self.resident is None:
            yield from self._copied() if self.device.type == "cuda" else self._read()
            return
        begin = 0
        for first, part in self._cuts(most):
            end = begin + self._padded(len(part))
            yield Stretch(first, len(part), self.resident[begin:end])
            begin = end

    def _padded(self, count: int) -> int:
        return -(-count // self.size) * self.size

    def _cuts(self, tiles: int) -> Iterator[tuple[int, np.ndarray]]:
        """Each shard in parts of so many tiles, with the row of their first vector."""
        first = 0
        for shard in self.shards:
            for start in range(0, len(shard), tiles * self.size):
                yield first + start, shard[start : start + tiles * self.size]
            first += len(shard)

    def _fit(self, spare: float) -> bool:
        """True if all tiles fit into a GPU's free memory."""
        if self.device.type != "cuda":
            return False
        torch.cuda.empty_cache()  # else memory that torch keeps unused counts as taken
        free, _ = torch.cuda.mem_get_info(self.device)
        return 4 * self.dimension * sum(self._padded(len(shard)) for shard in self.shards) + spare <= free

    def _loaded(self) -> torch.Tensor:
        """All tiles, float32 [tiles x size, dimension]."""
        passages = sum(self._padded(len(shard)) for shard in self.shards)
        whole = torch.empty(passages, self.dimension, device=self.device)
        for number, stretch in enumerate(self._copied()):
            whole[number * self.size : (number + 1) * self.size] = stretch.vectors
        return whole

    def _buffer(self) -> torch.Tensor:
        """Memory of the processor for what is read together, in the vectors' own numbers."""
        rows = min(HELD[self.device.type] * self.size, max(self._padded(len(shard)) for shard in self.shards))
        return torch.from_numpy(np.empty((rows, self.dimension), self.shards[0].dtype))

    def _fill(self, buffer: torch.Tensor, part: np.ndarray) -> torch.Tensor:
        """Vectors with their padding, in a buffer."""
        rows = self._padded(len(part))
        buffer.numpy()[: len(part)] = part
        buffer[len(part) : rows] = 0
        return buffer[:rows]

    def _read(self) -> Iterator[Stretch]:
        buffer = self._buffer()
        for first, part in self._cuts(HELD["cpu"]):
            yield Stretch(first, len(part), self._fill(buffer, part).float())

    def _copied(self) -> Iterator[Stretch]:
        """The same on a GPU. The copy of a tile begins before the one before it is given out.

        Events order what shares memory, and the processor waits only for copies. A slot is filled when its last copy
        has left it, and copied when the last work on what it gave, which is recorded before the next tile is taken, is
        done.
        """
        here, side = torch.cuda.current_stream(self.device), torch.cuda.Stream(self.device)
        slots = [_Slot.of(self._buffer(), self.device) for _ in range(2)]
        side.wait_stream(here)  # whose last work may have been on the same memory
        ahead: tuple[int, int, _Slot] | None = None
        try:
            for (first, part), slot in zip(self._cuts(HELD["cuda"]), cycle(slots), strict=False):
                slot.copied.synchronize()
                self._fill(slot.pinned, part)
                side.wait_event(slot.used)
                with torch.cuda.stream(side):
                    slot.there.copy_(slot.pinned, non_blocking=True)
                    slot.copied.record(side)
                if ahead:
                    yield self._given(*ahead, here)
                    ahead[-1].used.record(here)
                ahead = first, len(part), slot
            if ahead:
                yield self._given(*ahead, here)
        finally:
            here.wait_stream(side)

    def _given(self, first: int, count: int, slot: "_Slot", here: torch.cuda.Stream) -> Stretch:
        here.wait_event(slot.copied)
        return Stretch(first, count, slot.there.float())


class _Slot(NamedTuple):
    """A tile's way to a GPU: from pinned memory, which is copied without the processor, to a place there."""

    pinned: torch.Tensor
    there: torch.Tensor
    copied: torch.cuda.Event
    used: torch.cuda.Event

    @classmethod
    def of(cls, buffer: torch.Tensor, device: torch.device) -> "_Slot":
        return cls(buffer.pin_memory(), torch.empty_like(buffer, device=device), torch.cuda.Event(), torch.cuda.Event())

"""Work spread over processes, with results in the order of the work and no more of either in memory than is needed."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from encore.storage.processes import process_pool

W = TypeVar("W")
R = TypeVar("R")
_AHEAD = 4  # parts handed out for each process


def in_order(work: Callable[[W], R], parts: Iterable[W], processes: int) -> Iterator[R]:
    """``map(work, parts)`` over processes; the first error ends it, and parts not begun are given up."""
    if processes <= 1:
        yield from map(work, parts)
        return
    with process_pool(processes) as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for part in parts:
                waiting.append(pool.submit(work, part))
                if len(waiting) >= _AHEAD * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

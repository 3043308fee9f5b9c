"""Examples made ahead of their step, so that an accelerator does not wait for the text that it reads next."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Any, TypeVar

T = TypeVar("T")
AHEAD = 16  # batches; as many as are dealt together, see randomness.py


def prefetched(items: Iterator[T], count: int = AHEAD) -> Iterator[T]:
    """The same items in the same order, up to ``count`` of them made by a thread before they are asked for.

    An error of the iterator is raised where its item would have come. The thread ends with its reader.
    """
    made: queue.Queue[tuple[bool, Any]] = queue.Queue(count)
    left = threading.Event()

    def put(item: tuple[bool, Any]) -> None:
        waiting = True
        while waiting and not left.is_set():
            with contextlib.suppress(queue.Full):
                made.put(item, timeout=0.2)
                waiting = False

    def work() -> None:
        try:
            for item in items:
                put((True, item))
                if left.is_set():
                    return
            put((False, None))
        except BaseException as error:  # whatever it is, the reader must hear of it
            put((False, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            good, item = made.get()
            if not good:
                if item is not None:
                    raise item
                return
            yield item
    finally:
        left.set()

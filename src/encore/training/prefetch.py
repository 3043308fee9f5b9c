"""Batches made ahead of their step, so that an accelerator does not wait for the text that it reads next."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

import torch

from encore.training.batches import Batch

T = TypeVar("T")
AHEAD = 4  # batches


def prefetched(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """The same items in the same order, up to ``AHEAD`` of them made by a thread before they are asked for.

    An error of the generator is raised where its item would have come. Closing the reader closes the generator and
    waits for the thread: a process that ends while a thread of it is inside of torch is aborted.
    """
    made: queue.Queue[tuple[bool, Any]] = queue.Queue(AHEAD)
    left = threading.Event()

    def put(item: tuple[bool, Any]) -> None:
        waiting = True
        while waiting and not left.is_set():
            with contextlib.suppress(queue.Full):
                made.put(item, timeout=0.2)
                waiting = False

    def work() -> None:
        try:
            with contextlib.closing(items):
                for item in items:
                    put((True, item))
                    if left.is_set():
                        return
            put((False, None))
        except BaseException as error:  # whatever it is, the reader must hear of it
            put((False, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
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
        thread.join()


def pinned(batches: Iterable[Batch]) -> Generator[Batch, None, None]:
    """The same batches in memory that a GPU copies from while both it and this process continue to work."""
    for batch in batches:
        parts = []
        for part in batch.parts:
            arrays = {name: torch.from_numpy(array).pin_memory().numpy() for name, array in part.arrays.items()}
            parts.append(part._replace(arrays=arrays))
        yield batch._replace(parts=parts)

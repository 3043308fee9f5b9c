"""Items made ahead are the same items."""

import itertools
import threading
import time

import pytest

from encore.training.batches import prefetched


def test_the_items_and_their_order_stay() -> None:
    assert list(prefetched(item for item in range(100))) == list(range(100))


def test_an_error_comes_where_its_item_would_have() -> None:
    def items():
        yield 1
        raise ValueError("no second")

    reader = prefetched(items())
    assert next(reader) == 1
    with pytest.raises(ValueError, match="no second"):
        next(reader)


def test_the_thread_has_ended_when_its_reader_is_closed() -> None:
    before = threading.active_count()
    closed = []

    def items():
        try:
            for number in itertools.count():
                time.sleep(0.01)
                yield number
        finally:
            closed.append(True)

    reader = prefetched(items())
    next(reader)
    assert threading.active_count() == before + 1
    reader.close()
    assert threading.active_count() == before
    assert closed

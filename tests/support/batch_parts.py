"""A batch in parts, for tests."""

from typing import Any

import numpy as np

from encore.models.memory import PartSize
from encore.training.batches import BatchPart, split_batch
from encore.training.distributed import ALONE
from encore.training.task import Task


def in_parts(task: Task, examples: list[Any], most: int, *key: str | int) -> list[BatchPart]:
    """The whole batch, ``most`` examples at a time."""
    sizes = np.zeros(len(examples), dtype=np.int64)
    return split_batch(task, examples, sizes, PartSize(most), ALONE, 0, *key)

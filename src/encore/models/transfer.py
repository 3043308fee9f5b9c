"""Tensors on their way between the host and a device, neither of which waits for the other."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

T = TypeVar("T")
AHEAD = {"cpu": 0, "cuda": 1}  # pieces of work that are begun before one is waited for


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device; neither it nor the host waits for the other."""
    if tensor.device.type == device.type:
        return tensor
    return tensor.pin_memory().to(device, non_blocking=True)


class ToHost:
    """A tensor that is copied to the host once the device has computed it."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor.to("cpu", non_blocking=True)  # into pinned memory
        self._copied = None if tensor.device.type == "cpu" else torch.cuda.Event()
        if self._copied is not None:
            self._copied.record()

    def numpy(self) -> np.ndarray:
        """The numbers of the tensor, once they have arrived."""
        if self._copied is not None:
            self._copied.synchronize()
        return self._tensor.numpy()


def one_ahead(begun: Iterable[T], device: torch.device) -> Iterator[T]:
    """The same items, on a GPU each when the next one is begun, so that it has work while the host takes results."""
    waiting: deque[T] = deque()
    for item in begun:
        waiting.append(item)
        if len(waiting) > AHEAD[device.type]:
            yield waiting.popleft()
    yield from waiting

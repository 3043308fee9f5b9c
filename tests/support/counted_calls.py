"""The calls and bytes of a training step at full size on a GPU, counted in seconds by a processor.

Tensors of the simulated GPU then wrap ones of torch's ``meta`` device, which have shapes and types and no numbers. What
is cast is what autocast casts on a processor, which next to a GPU's leaves out the input of a norm in half precision.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.support import simulated_gpu
from tests.support.simulated_gpu import GpuTensor

PRODUCTS = {"mm", "addmm", "bmm", "_flash_attention_forward", "_flash_attention_backward"}
CASTS = {"_to_copy", "_foreach_copy_"}
NONE = {"detach", "_unsafe_view", "empty", "empty_like", "new_empty"}  # for which nothing runs
PICKS = {"gather", "index_select", "embedding"}  # which read no more than they write


class Calls(TorchDispatchMode):
    """Inside, what a GPU is called for, by name, and the bytes that these calls read and write; views are neither.

    ``bytes`` leaves out products and attention, whose time is in their operations.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        tensors = [each for each in tree_leaves((args, kwargs, made)) if isinstance(each, GpuTensor)]
        name = str(func._schema.name).removeprefix("aten::")
        if tensors and not func.is_view and name not in NONE:
            self.names[name] += 1
            self.bytes += 0 if name in PRODUCTS else _moved(name, args, made, tensors)
        return made

    @property
    def casts(self) -> int:
        return sum(self.names[name] for name in CASTS)


def _moved(name: str, args: Any, made: Any, tensors: list[GpuTensor]) -> int:
    """Bytes that a call reads and writes."""
    if name in PICKS or name == "scatter_":
        tensors = [made if name in PICKS else args[3]] * 2
    return sum(each.numel() * each.element_size() for each in tensors)


@contextlib.contextmanager
def gpu_without_numbers() -> Iterator[None]:
    """Inside, the simulated GPU computes shapes only."""
    kernels = {
        "aten._flash_attention_forward.default": _flash,
        "aten._flash_attention_backward.default": lambda _, *parts, **__: tuple(map(torch.empty_like, parts[:3])),
    }
    with (
        mock.patch.object(simulated_gpu, "PROCESSOR", torch.device("meta")),
        mock.patch.dict(simulated_gpu.IMPLEMENTED, kernels),
        mock.patch.object(F, "dropout", _dropout),
        simulated_gpu.simulated_gpu(),
    ):
        yield


def _flash(query: Tensor, *_: Any, **__: Any) -> tuple[Tensor, ...]:
    sums, seed = query.new_empty(query.shape[1], len(query), dtype=torch.float32), query.new_empty(2)
    return torch.empty_like(query), sums, seed, seed, query.new_empty(0)


def _dropout(states: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """One call, as on a GPU."""
    return torch.native_dropout(states, p, True)[0] if training and p else states

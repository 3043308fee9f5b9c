"""A simulated GPU: the processor computes, and operations that a real GPU would refuse fail.

A tensor on it wraps a tensor of the processor and has the device ``cuda:0``. So the code that only runs on a GPU runs
in tests. Operations on tensors of both devices fail. Each wait for the device is counted by the line of code that
causes it. Attention kernels that the processor lacks are computed text by text.

Work on another stream than the usual one happens as late as its events allow; that on the usual one at once.

It does not simulate speed, memory or rounding, nor what kernels require but the device.
"""

from __future__ import annotations

import contextlib
import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from encore.models.residual import zero
from tests.support.simulated_attention import KERNELS

GPU = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))  # each process has one of its own
PROCESSOR = torch.device("cpu")
MOVING, INDEXING = {"_to_copy", "copy_"}, {"index", "index_put_", "index_put", "_index_put_impl_"}
WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "bincount", "repeat_interleave", "_unique2"}
MEMORY = 1 << 30  # bytes
ANSWERS = {  # what functions of torch.cuda return
    "is_available": True,
    "is_initialized": True,
    "_lazy_init": None,
    "device_count": int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
    "current_device": GPU.index,
    "set_device": None,
    "get_device_name": "simulated",
    "get_device_capability": (9, 0),
    "get_arch_list": [],
    "is_bf16_supported": True,
    "set_per_process_memory_fraction": None,
    "empty_cache": None,
    "synchronize": None,
    "mem_get_info": (MEMORY, MEMORY),
    "max_memory_allocated": MEMORY,
    "reset_peak_memory_stats": None,
}


class GpuTensor(Tensor):
    """A tensor on the simulated GPU; to autograd it is one of the processor."""

    on_cpu: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl
    device = property(lambda self: GPU)
    is_cuda = property(lambda self: True)

    @staticmethod
    def __new__(cls, on_cpu: Tensor) -> GpuTensor:
        """``on_cpu``: the tensor to wrap, without a graph."""
        made = Tensor._make_wrapper_subclass(
            cls,
            on_cpu.size(),
            strides=on_cpu.stride(),
            storage_offset=on_cpu.storage_offset(),
            dtype=on_cpu.dtype,
            layout=on_cpu.layout,
            device=torch.device("cpu"),
        )
        made.on_cpu = on_cpu
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {}, Counter())

    def __repr__(self, *_: Any, **__: Any) -> str:
        return f"GpuTensor({self.on_cpu})"

    def cpu(self) -> Tensor:
        return torch.ops.aten._to_copy.default(self, device=PROCESSOR)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.cpu().__reduce_ex__(protocol)

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert a tensor of the simulated GPU to numpy; use Tensor.cpu()")


class Stream:
    """Work that is done when somebody waits for it."""

    def __init__(self, *_: Any) -> None:
        self.work: list[Callable[[], object]] = []
        self.done = 0

    def do(self, until: int) -> None:
        """The work up to this number, if that is not done."""
        while self.done < until:
            self.done += 1
            self.work[self.done - 1]()

    def wait_event(self, event: Event) -> None:
        """What comes next waits for it; of the usual stream, everything does."""
        if self is USUAL:
            event.point()()
        else:
            self.work.append(event.point())

    def wait_stream(self, other: Stream) -> None:
        event = Event(Counter())
        event.record(other)
        self.wait_event(event)


class Event:
    """A point in the work of a stream; one that was never recorded is behind."""

    def __init__(self, waits: Counter[str]) -> None:
        """``waits`` counts those of the host."""
        self.stream, self.until, self.seen, self.waits = USUAL, 0, True, waits

    def record(self, stream: Stream | None = None) -> None:
        self.stream = stream or _streams[-1]
        self.until, self.seen = len(self.stream.work), False

    def point(self) -> Callable[[], None]:
        """What waits for it as it is now, whatever it is recorded for later."""
        stream, until = self.stream, self.until
        return lambda: stream.do(until)

    def synchronize(self) -> None:
        """Let the host wait, which has then ``seen`` that it is behind."""
        self.point()()
        if not self.seen:
            self.waits[_caller()] += 1
        self.seen = True


USUAL = Stream()
_streams = [USUAL]  # the last one is that of new work


@contextlib.contextmanager
def _working_on(stream: Stream) -> Iterator[None]:
    _streams.append(stream)
    try:
        yield
    finally:
        _streams.pop()


class SimulatedGpu(TorchDispatchMode):
    """Inside, operations with ``device="cuda"`` make tensors on it.

    Attributes:
        waits: how often the program waited for the device, by the line of this project that caused it.
        calls: operations by their name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls[_name(func)] += 1
        return _run(func, args, kwargs or {}, self.waits)


@contextlib.contextmanager
def simulated_gpu() -> Iterator[SimulatedGpu]:
    """Inside, ``torch.cuda`` reports a GPU, and what would need a real one is replaced."""
    gpu = SimulatedGpu()
    autocast, swaps = torch.autocast, torch.__future__.get_swap_module_params_on_conversion()
    is_autocast_enabled, get_autocast_dtype = torch.is_autocast_enabled, torch.get_autocast_dtype
    _device_constructors()  # a list that torch keeps from its first use on, and that is to have torch's own functions
    with contextlib.ExitStack() as patches:
        for name, answer in ANSWERS.items():
            patches.enter_context(mock.patch.object(torch.cuda, name, lambda *_, answer=answer, **__: answer))
        for owner, name, instead in (
            (torch.accelerator, "current_accelerator", lambda *_, **__: None),  # a CUDA build would ask its driver
            (torch.cuda, "Stream", Stream),
            (torch.cuda, "Event", lambda: Event(gpu.waits)),
            (torch.cuda, "current_stream", lambda *_: USUAL),
            (torch.cuda, "stream", _working_on),
            (torch, "autocast", lambda device_type, dtype=None, **options: autocast("cpu", dtype, **options)),
            (torch, "is_autocast_enabled", lambda *_: is_autocast_enabled("cpu")),
            (torch, "get_autocast_dtype", lambda *_: get_autocast_dtype("cpu")),
            (F, "one_hot", _one_hot),
            (torch._C, "_group_tensors_by_device_and_dtype", _grouped),
            (torch, "Generator", _Generator),
            (torch.distributed, "init_process_group", _init_process_group),
            (torch, "tensor", _tensor),
            (torch, "inference_mode", torch.no_grad),
            (Tensor, "to", _to),
            (Tensor, "cuda", lambda tensor, *_, **__: tensor.to(GPU)),
            (Tensor, "pin_memory", lambda tensor, *_: tensor.clone()),
        ):
            patches.enter_context(mock.patch.object(owner, name, instead))
        zero.cache_clear()
        patches.callback(zero.cache_clear)
        patches.callback(torch.__future__.set_swap_module_params_on_conversion, swaps)
        torch.__future__.set_swap_module_params_on_conversion(True)
        yield patches.enter_context(gpu)


class _Generator(torch.Generator):
    """One of the processor on any device."""

    def __new__(cls, *_: Any, **__: Any) -> _Generator:
        return super().__new__(cls)


def _one_hot(values: Tensor, classes: int) -> Tensor:
    """Torch's own compares with a tensor of the processor, since it takes the device from C++."""
    return values[..., None].eq(torch.arange(classes, device=values.device)).long()


def _init_process_group(backend: str, original: Any = torch.distributed.init_process_group, **options: Any) -> None:
    """Gloo in place of NCCL, of which the processor has none."""
    assert (backend, options.pop("device_id")) == ("cpu:gloo,cuda:nccl", GPU)
    original("gloo", **options)


def _tensor(values: Any, device: Any = None, original: Any = torch.tensor, **options: Any) -> Tensor:
    made: Tensor = original(values, **options)
    return made if device is None else made.to(device)


def _to(tensor: Tensor, *wanted: Any, copy: bool = False, original: Any = Tensor.to, **options: Any) -> Tensor:
    """``Tensor.to``, which in C++ takes a simulated tensor for one of the processor."""
    device, dtype, non_blocking, _ = torch._C._nn._parse_to(*wanted, **options)
    if device is None or device.type == tensor.device.type:
        return original(tensor, dtype or tensor.dtype, copy=copy)
    end = GPU if device.type == "cuda" else PROCESSOR
    return torch.ops.aten._to_copy.default(tensor, dtype=dtype, device=end, non_blocking=non_blocking)


def _grouped(tensors: Any, *rest: Any, original: Any = torch._C._group_tensors_by_device_and_dtype) -> Any:
    """Groups of tensors for clipping, with the device that tensors have in Python."""
    device = next(tensor for tensor in tensors[0] if tensor is not None).device
    return {(device, dtype): group for (_, dtype), group in original(tensors, *rest).items()}


def _name(func: Any) -> str:
    return str(func._schema.name).removeprefix("aten::")


def _run(func: Any, args: Any, kwargs: dict[str, Any], waits: Counter[str]) -> Any:
    name = _name(func)
    if name == "copy_":
        args, kwargs = args[:2], kwargs | dict(zip(["non_blocking"], args[2:], strict=False))
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    here = [tensor for tensor in tensors if isinstance(tensor, GpuTensor)]
    result_on_gpu = _result_on_gpu(name, args, kwargs, here)
    if not here and not result_on_gpu:
        return func(*args, **kwargs)
    _check_devices(name, args, tensors)
    if _waits(name, tensors, kwargs, result_on_gpu):
        waits[_caller()] += 1
    kwargs |= {"device": PROCESSOR} if kwargs.get("device") is not None else {}
    kwargs |= {"non_blocking": False} if "non_blocking" in kwargs else {}
    known = {id(tensor.on_cpu): tensor for tensor in here}
    args, kwargs = tree_map(lambda leaf: leaf.on_cpu if isinstance(leaf, GpuTensor) else leaf, (args, kwargs))
    if _streams[-1] is not USUAL:
        assert name == "copy_", "nothing else is done on another stream"
        _streams[-1].work.append(lambda: func(*args, **kwargs))
        return here[0]
    made = IMPLEMENTED.get(str(func), func)(*args, **kwargs)
    if name == "_to_copy":
        made = made.clone() if made is args[0] else made
    if not result_on_gpu:
        return made

    def wrap(leaf: Any) -> Any:
        """What was written in place stays the tensor that it was."""
        if id(leaf) in known:
            return known[id(leaf)]
        return GpuTensor(leaf) if isinstance(leaf, Tensor) else leaf

    return tree_map(wrap, made)


def _result_on_gpu(name: str, args: Any, kwargs: dict[str, Any], here: list[GpuTensor]) -> bool:
    """Whether an operation gives a tensor of the GPU."""
    if torch._C._current_autograd_node() is not None:  # where C++ passes the processor as the device
        return bool(here)
    if kwargs.get("device") is not None:
        return torch.device(kwargs["device"]).type == "cuda"
    return isinstance(args[0], GpuTensor) if name == "copy_" else bool(here)


def _check_devices(name: str, args: Any, tensors: list[Tensor]) -> None:
    """Raises: RuntimeError: as torch does where tensors of two devices meet.

    Numbers may, and so may indices of the processor for a tensor of the GPU.
    """
    if name in MOVING:
        return
    if name in INDEXING and isinstance(args[0], GpuTensor):
        tensors = [tensor for tensor in tree_leaves((args[0], args[2:])) if isinstance(tensor, Tensor)]
    if len({isinstance(tensor, GpuTensor) for tensor in tensors if tensor.ndim > 0}) > 1:
        raise RuntimeError(f"{name}: expected all tensors to be on the same device, found cuda:0 and cpu")


def _waits(name: str, tensors: list[Tensor], kwargs: dict[str, Any], result_on_gpu: bool) -> bool:
    if name in MOVING:
        both = not result_on_gpu or not all(isinstance(tensor, GpuTensor) for tensor in tensors)
        return both and not kwargs.get("non_blocking")
    by_mask = name in INDEXING and any(tensor.dtype == torch.bool for tensor in tensors[1:])
    return name in WAITING or by_mask or not result_on_gpu


def _caller() -> str:
    """The line of this project that causes a wait."""
    ours = [frame for frame in traceback.extract_stack() if "/src/encore/" in frame.filename]
    return f"{ours[-1].filename.split('/src/encore/')[1]}: {ours[-1].line}" if ours else "a test"


def _product(left: Tensor, right: Tensor, dtype: torch.dtype, *, out: Tensor) -> Tensor:
    return torch.mm(left.to(dtype), right.to(dtype), out=out)


def _sum_with_product(total: Tensor, left: Tensor, right: Tensor, dtype: torch.dtype, *, out: Tensor) -> Tensor:
    return torch.addmm(total, left.to(dtype), right.to(dtype), out=out)


OF_TWO_TYPES = {"aten.mm.dtype_out": _product, "aten.addmm.dtype_out": _sum_with_product}
IMPLEMENTED = KERNELS | OF_TWO_TYPES  # operators that the processor lacks

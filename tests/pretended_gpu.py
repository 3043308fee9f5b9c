"""A GPU that is pretended: the processor computes, and what a real one would refuse is refused.

Tensors on it hold a tensor of the processor and say that they are on ``cuda:0``. So the ways of our code that only a
GPU takes run where there is none. Operations on tensors of both devices fail, as there. Each wait for the device is
counted by the line that asks. The operators of attention that no processor has are computed text by text.

What it cannot show: speed, memory, streams, rounding, and what a kernel asks of its arguments beyond their device.
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
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

GPU = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))  # each process of several has its own
PROCESSOR = torch.device("cpu")
MOVING, INDEXING = {"_to_copy", "copy_"}, {"index", "index_put_", "index_put", "_index_put_impl_"}
WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "bincount", "repeat_interleave", "_unique2"}
MEMORY = 1 << 30  # bytes
SAYS = {  # of torch.cuda
    "is_available": True,
    "is_initialized": True,
    "_lazy_init": None,
    "device_count": int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
    "current_device": GPU.index,
    "set_device": None,
    "get_device_name": "pretended",
    "get_device_capability": (9, 0),
    "is_bf16_supported": True,
    "set_per_process_memory_fraction": None,
    "empty_cache": None,
    "synchronize": None,
    "mem_get_info": (MEMORY, MEMORY),
    "max_memory_allocated": 0,
    "reset_peak_memory_stats": None,
}


class OnGpu(Tensor):
    """A tensor on the pretended GPU. Torch's autograd takes it for one of the processor."""

    inside: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl
    device = property(lambda self: GPU)
    is_cuda = property(lambda self: True)

    @staticmethod
    def __new__(cls, inside: Tensor) -> OnGpu:
        """``inside``: of the processor, without a graph."""
        made = Tensor._make_wrapper_subclass(
            cls,
            inside.size(),
            strides=inside.stride(),
            storage_offset=inside.storage_offset(),
            dtype=inside.dtype,
            layout=inside.layout,
            device=PROCESSOR,
        )
        made.inside = inside
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {}, Counter())

    def __repr__(self, *_: Any, **__: Any) -> str:
        return f"OnGpu({self.inside})"

    def cpu(self) -> Tensor:
        return torch.ops.aten._to_copy.default(self, device=PROCESSOR)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.cpu().__reduce_ex__(protocol)

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError("can't convert a tensor of the pretended GPU to numpy; use Tensor.cpu()")


class PretendedGpu(TorchDispatchMode):
    """Inside, operations with ``device="cuda"`` make tensors on it.

    Attributes:
        waits: how often the program waited for the device, by the line of this project that asked.
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
def pretended_gpu() -> Iterator[PretendedGpu]:
    """Inside, torch says that there is a GPU."""
    autocast, swaps = torch.autocast, torch.__future__.get_swap_module_params_on_conversion()
    with contextlib.ExitStack() as patches:
        for name, answer in SAYS.items():
            patches.enter_context(mock.patch.object(torch.cuda, name, lambda *_, answer=answer, **__: answer))
        for owner, name, instead in (
            (torch, "autocast", lambda device, dtype=None, **options: autocast("cpu", dtype, **options)),
            (
                F,
                "one_hot",
                lambda values, classes: values[..., None].eq(torch.arange(classes, device=values.device)).long(),
            ),
            (torch._C, "_group_tensors_by_device_and_dtype", _grouped),
            (torch, "Generator", _Generator),
            (torch.distributed, "init_process_group", _join),
            (torch, "tensor", _tensor),
            (torch, "inference_mode", torch.no_grad),
            (Tensor, "to", _to),
            (Tensor, "cuda", lambda tensor, *_, **__: tensor.to(GPU)),
            (Tensor, "pin_memory", lambda tensor, *_: tensor.clone()),
        ):
            patches.enter_context(mock.patch.object(owner, name, instead))
        patches.callback(torch.__future__.set_swap_module_params_on_conversion, swaps)
        torch.__future__.set_swap_module_params_on_conversion(True)
        yield patches.enter_context(PretendedGpu())


class _Generator(torch.Generator):
    """One of the processor on any device."""

    def __new__(cls, *_: Any, **__: Any) -> _Generator:
        return super().__new__(cls)


def _join(backend: str, original: Any = torch.distributed.init_process_group, **options: Any) -> None:
    """Processes with a GPU each show one another what is on them."""
    assert (backend, options.pop("device_id")) == ("nccl", GPU)
    original("gloo", **options)


def _tensor(values: Any, device: Any = None, original: Any = torch.tensor, **options: Any) -> Tensor:
    made: Tensor = original(values, **options)
    return made if device is None else made.to(device)


def _to(tensor: Tensor, *wanted: Any, copy: bool = False, original: Any = Tensor.to, **options: Any) -> Tensor:
    """``Tensor.to``, which asks what a real GPU is made of, and takes a pretended one for the processor."""
    device, dtype, non_blocking, _ = torch._C._nn._parse_to(*wanted, **options)
    if device is None or device.type == tensor.device.type:
        return original(tensor, dtype or tensor.dtype, copy=copy)
    end = GPU if device.type == "cuda" else PROCESSOR
    return torch.ops.aten._to_copy.default(tensor, dtype=dtype, device=end, non_blocking=non_blocking)


def _grouped(tensors: Any, *rest: Any, original: Any = torch._C._group_tensors_by_device_and_dtype) -> Any:
    """What clipping a gradient's norm asks, with the devices that tensors say they are on."""
    device = next(tensor for tensor in tensors[0] if tensor is not None).device
    return {(device, dtype): group for (_, dtype), group in original(tensors, *rest).items()}


def _name(func: Any) -> str:
    return str(func._schema.name).removeprefix("aten::")


def _run(func: Any, args: Any, kwargs: dict[str, Any], waits: Counter[str]) -> Any:
    name = _name(func)
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    here = [tensor for tensor in tensors if isinstance(tensor, OnGpu)]
    ends_here = _ends_here(name, args, kwargs, here)
    if not here and not ends_here:
        assert name not in ("c10d::allreduce_", "c10d::allgather_"), "NCCL knows no tensors of the processor"
        return func(*args, **kwargs)
    _one_device(name, args, tensors)
    if _waits(name, tensors, kwargs, ends_here):
        waits[_asking()] += 1
    kwargs |= {"device": PROCESSOR} if kwargs.get("device") is not None else {}
    kwargs |= {"non_blocking": False} if "non_blocking" in kwargs else {}
    known = {id(tensor.inside): tensor for tensor in here}
    args, kwargs = tree_map(lambda leaf: leaf.inside if isinstance(leaf, OnGpu) else leaf, (args, kwargs))
    made = OWN.get(str(func), func)(*args, **kwargs)
    if name == "_to_copy":
        made = made.clone() if made is args[0] else made
    if not ends_here:
        return made
    return tree_map(
        lambda leaf: known[id(leaf)] if id(leaf) in known else OnGpu(leaf) if isinstance(leaf, Tensor) else leaf, made
    )


def _ends_here(name: str, args: Any, kwargs: dict[str, Any], here: list[OnGpu]) -> bool:
    """Whether an operation gives a tensor of the GPU."""
    if torch._C._current_autograd_node() is not None:  # which takes the device for the processor
        return bool(here)
    if kwargs.get("device") is not None:
        return torch.device(kwargs["device"]).type == "cuda"
    return isinstance(args[0], OnGpu) if name == "copy_" else bool(here)


def _one_device(name: str, args: Any, tensors: list[Tensor]) -> None:
    """Raises: RuntimeError: as torch does where tensors of two devices meet.

    Numbers may, and so may indices of the processor for a tensor of the GPU.
    """
    if name in MOVING:
        return
    if name in INDEXING and isinstance(args[0], OnGpu):
        tensors = [tensor for tensor in tree_leaves((args[0], args[2:])) if isinstance(tensor, Tensor)]
    if len({isinstance(tensor, OnGpu) for tensor in tensors if tensor.ndim > 0}) > 1:
        raise RuntimeError(f"{name}: expected all tensors to be on the same device, found cuda:0 and cpu")


def _waits(name: str, tensors: list[Tensor], kwargs: dict[str, Any], ends_here: bool) -> bool:
    if name in MOVING:
        both = not ends_here or not all(isinstance(tensor, OnGpu) for tensor in tensors)
        return both and not (ends_here and kwargs.get("non_blocking"))
    by_mask = name in INDEXING and any(tensor.dtype == torch.bool for tensor in tensors[1:])
    return name in WAITING or by_mask or not ends_here


def _asking() -> str:
    """The line of this project that asks."""
    ours = [frame for frame in traceback.extract_stack() if "/src/encore/" in frame.filename]
    return f"{ours[-1].filename.split('/src/encore/')[1]}: {ours[-1].line}" if ours else "a test"


def _check(query: Tensor, bounds: Tensor, of_keys: Tensor, longest: int, longest_key: int, options: Any) -> None:
    assert bounds.dtype == torch.int32
    assert bounds.equal(of_keys)
    assert (int(bounds[0]), int(bounds[-1])) == (0, len(query))
    assert bounds.diff().max() <= longest == longest_key
    assert not any(options.values())


def _flash(*given: Any, **options: Any) -> tuple[Any, ...]:
    """``_flash_attention_forward`` of [T, heads, D]; the seed of its dropout is kept for the backward pass."""
    query, key, value, bounds, of_keys, longest, longest_key, rate, causal, debug = given
    assert query.dtype in (torch.float16, torch.bfloat16)
    assert (causal, debug) == (False, False)
    _check(query, bounds, of_keys, longest, longest_key, options)
    seed = torch.randint(1 << 62, ())
    sums = query.new_zeros(query.shape[1], len(query), dtype=torch.float32)
    return _attention(query, key, value, bounds, rate, seed), sums, seed, seed, query.new_zeros(0)


def _flash_backward(*given: Any, **options: Any) -> tuple[Tensor, ...]:
    gradient, query, key, value, _, _, bounds, _, _, _, rate, _, seed, _ = given
    return _attention_backward(gradient, query, key, value, bounds, rate, seed)


def _efficient(*given: Any, **options: Any) -> tuple[Any, ...]:
    """``_efficient_attention_forward`` of [1, T, heads, D]."""
    query, key, value, bias, bounds, of_keys, longest, longest_key, rate, mask_type, *learns = given
    assert (len(query), bias, mask_type) == (1, None, 0)
    assert rate == 0, "the kernel's backward pass would draw another dropout"
    _check(query[0], bounds, of_keys, longest, longest_key, options)
    seed = torch.randint(1 << 62, ())
    sums = query.new_zeros(len(bounds) - 1, query.shape[2], longest if any(learns) else 0)
    return _attention(query[0], key[0], value[0], bounds, rate, seed)[None], sums, seed, seed, longest, longest


def _efficient_backward(*given: Any, **options: Any) -> tuple[Tensor | None, ...]:
    gradient, query, key, value, _, _, bounds, _, _, _, sums, rate, seed, *_ = given
    assert sums.numel(), "the forward pass did not keep what the backward pass needs"
    found = _attention_backward(gradient[0], query[0], key[0], value[0], bounds, rate, seed)
    return *(part[None] for part in found), None


def _attention(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, rate: float, seed: Tensor) -> Tensor:
    """Attention of each text to itself, [T, heads, D]."""
    texts = _texts(bounds, query, key, value)
    chosen = _chances(texts, rate, seed)
    found = [
        (_probabilities(query, key) * kept) @ _wide(value)
        for (query, key, value), kept in zip(texts, chosen, strict=True)
    ]
    return torch.cat(found, 1).transpose(0, 1).to(query.dtype)


def _attention_backward(
    gradient: Tensor, query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, rate: float, seed: Tensor
) -> tuple[Tensor, ...]:
    """The gradients of queries, keys and values, [T, heads, D], by hand, since no graph is made below autograd."""
    found = []
    texts = _texts(bounds, query, key, value, gradient)
    for (*asked, values, pulled), kept in zip(texts, _chances(texts, rate, seed), strict=True):
        queries, keys, values, pulled = (_wide(part) for part in (*asked, values, pulled))
        share = _probabilities(queries, keys)
        inner = pulled @ values.transpose(1, 2) * kept
        scores = share * (inner - (inner * share).sum(-1, keepdim=True)) * queries.shape[-1] ** -0.5
        found.append((scores @ keys, scores.transpose(1, 2) @ queries, (share * kept).transpose(1, 2) @ pulled))
    return tuple(torch.cat(parts, 1).transpose(0, 1).to(query.dtype) for parts in zip(*found, strict=True))


def _texts(bounds: Tensor, *parts: Tensor) -> list[tuple[Tensor, ...]]:
    """Of each text its part of each [T, heads, D], as [heads, L, D]."""
    lengths = bounds.diff().tolist()
    return list(zip(*(part.transpose(0, 1).split(lengths, 1) for part in parts), strict=True))


def _wide(part: Tensor) -> Tensor:
    return part if part.dtype == torch.float64 else part.float()


def _probabilities(query: Tensor, key: Tensor) -> Tensor:
    return (_wide(query) @ _wide(key).transpose(1, 2) * query.shape[-1] ** -0.5).softmax(-1)


def _chances(texts: list[tuple[Tensor, ...]], rate: float, seed: Tensor) -> list[Tensor]:
    """What dropout multiplies the probabilities of each text with, [heads, L, L]."""
    drawn = torch.Generator().manual_seed(int(seed))
    shapes = [(*text[0].shape[:2], text[0].shape[1]) for text in texts]
    return [(torch.rand(shape, generator=drawn) >= rate) / (1 - rate) for shape in shapes]


def _product(left: Tensor, right: Tensor, dtype: torch.dtype, *, out: Tensor) -> Tensor:
    return torch.mm(left.to(dtype), right.to(dtype), out=out)


OWN: dict[str, Callable[..., Any]] = {  # what no processor has, or has otherwise
    "aten._flash_attention_forward.default": _flash,
    "aten._flash_attention_backward.default": _flash_backward,
    "aten._efficient_attention_forward.default": _efficient,
    "aten._efficient_attention_backward.default": _efficient_backward,
    "aten.mm.dtype_out": _product,
}

"""The device of a training and its arithmetic: threads, determinism, precision."""

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.utils import deterministic

from encore.errors import EncoreError
from encore.storage import environment, gpu_leases
from encore.storage.machine import cores

PRECISIONS = ("fp32", "tf32", "bf16")
DRIVER = Path("/dev/nvidia0")  # exists if a machine has a GPU and its driver


def prepare(numerics: dict[str, Any]) -> torch.device:
    """Set torch up as ``numerics`` says and give the device: its GPU, which no other job has, or the CPU.

    On a CPU with a fixed number of threads, and on a GPU with ``deterministic``, equal runs then end with equal bytes.

    Args:
        numerics: ``precision`` (fp32, tf32 or bf16), ``threads``, ``deterministic``.
    """
    precision = numerics.get("precision", "fp32")
    if precision not in PRECISIONS:
        raise EncoreError(f"precision {precision!r} is unknown; use one of {', '.join(PRECISIONS)}")
    gpu_leases.lease()
    given = any(os.environ.get(name) for name in ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS"))  # of a step, of a batch script
    if given and not torch.cuda.is_available() and not environment.number(environment.ALLOW_CPU):
        raise EncoreError(
            "SLURM gave this job a GPU that torch does not see; install the build of torch for GPUs (envs/gpu.txt), "
            f"look at the node's driver, or compute on the processor all the same with {environment.ALLOW_CPU}=1"
        )
    number = environment.number(environment.LOCAL_RANK)  # of this process on its machine, and of its GPU
    if torch.cuda.is_available() and number >= torch.cuda.device_count():
        raise EncoreError(
            f"there are more processes than GPUs ({torch.cuda.device_count()}); lower `execution: processes` or ask "
            "for more GPUs"
        )
    device = torch.device("cuda", number) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        _prepare_gpu(device, precision)
    elif precision == "tf32":
        raise EncoreError("a processor does not compute in tf32; set `numerics: precision: fp32`, or take a GPU")
    elif DRIVER.exists():
        print("torch does not see this machine's GPU (envs/gpu.txt has a build that does): computing on the processor")
    torch.set_num_threads(_threads(numerics, device))
    always = device.type == "cpu" or numerics.get("deterministic", False)
    if always:  # on a GPU torch then asks for it, and reads it at every product of matrices, for 0.1 ms
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # It does what `use_deterministic_algorithms` does, which first imports torch's compiler for over a second.
    torch.set_deterministic_debug_mode("error" if always else "default")
    # It costs time, and nothing here reads unwritten memory.
    deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return device


def _threads(numerics: dict[str, Any], device: torch.device) -> int:
    """The threads of ``numerics``, which decide how sums round on a CPU; with a GPU at most those of its job."""
    threads, there = int(numerics.get("threads", 1)), cores() or 1
    if device.type == "cpu":
        return threads
    given = min(there, environment.number(environment.THREADS) or there)
    return max(1, min(threads, given // environment.number(environment.LOCAL_SIZE)))


def _prepare_gpu(device: torch.device, precision: str) -> None:
    if not any(os.environ.get(name) for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")):
        # Batches are ragged, and would leave gaps between segments of memory that cannot grow.
        torch._C._accelerator_setAllocatorSettings("expandable_segments:True")
    torch.cuda.set_device(device)
    if (built := _capabilities()) and torch.cuda.get_device_capability(device) < min(built):
        raise EncoreError(
            f"the installed PyTorch has no kernels for a GPU as old as {torch.cuda.get_device_name(device)}; take a "
            "newer one, or a build of PyTorch for an earlier CUDA"
        )
    # cuDNN's attention would make a plan for each new shape of a batch, and nearly every batch has one.
    torch.backends.cuda.enable_cudnn_sdp(False)
    if precision != "fp32" and not torch.cuda.is_bf16_supported(including_emulation=False):  # nor is tf32
        raise EncoreError(
            f"{torch.cuda.get_device_name(device)} does not compute in {precision}; set `numerics: precision: fp32`, "
            "or take an A100 or later"
        )
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"


def _capabilities() -> list[tuple[int, int]]:
    """The compute capabilities that the installed PyTorch has kernels for."""
    names = (name.removeprefix("sm_").rstrip("af") for name in torch.cuda.get_arch_list() if name.startswith("sm_"))
    return [(int(name[:-1]), int(name[-1])) for name in names]


def leave_room(device: torch.device) -> None:
    """Keep a part of a GPU's memory from torch's allocator, for what is allocated outside of it.

    A training learns by running out of memory how much can go through the models at once. While kernels are loaded, or
    NCCL makes its connections, running out would end it.
    """
    if device.type == "cuda":
        torch.cuda.set_per_process_memory_fraction(0.95, device)


def precision(numerics: dict[str, Any], device: torch.device) -> AbstractContextManager[Any]:
    """The context of a forward pass."""
    if numerics.get("precision", "fp32") == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()

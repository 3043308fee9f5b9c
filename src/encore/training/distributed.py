"""Several processes that train as one: each works through its share of every batch.

All of them hold the same weights. Vectors to contrast are shown to all, and gradients are summed, so that each process
takes the step that a single one would take with the whole batch. Sums are in another order then, so with several
processes a training ends with other bytes, even on CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch import Tensor, nn

from encore.training import launch

PATIENCE = timedelta(hours=2)  # of the others while the first validates


@dataclass(frozen=True)
class ProcessGroup:
    """This process among those that train together; by default it is alone."""

    rank: int = 0
    size: int = 1
    device: torch.device | str = "cpu"

    @property
    def lead(self) -> bool:
        """Whether this is the process that prints, validates and saves."""
        return self.rank == 0

    def share(self, count: int, rank: int | None = None) -> range:
        """Which of ``count`` examples are this process's, or another's."""
        rank = self.rank if rank is None else rank
        return range(count * rank // self.size, count * (rank + 1) // self.size)

    def sum(self, values: Tensor) -> Tensor:
        """The sum of a tensor [...] over all processes, element by element."""
        if self.size > 1:
            values = values.to(self.device, copy=True)
            torch.distributed.all_reduce(values)
        return values

    @contextmanager
    def together(self) -> Iterator[None]:
        """If one process runs out of memory, all stop, so that none waits for another.

        Raises:
            torch.OutOfMemoryError: on every process, where one of them ran out of memory.
        """
        error = None
        try:
            yield
        except torch.OutOfMemoryError as found:
            error = str(found)
        if self.sum(torch.tensor(float(error is not None))) > 0:
            raise torch.OutOfMemoryError(error or "another process ran out of memory")

    def gather(self, rows: Tensor, count: int) -> Tensor:
        """The rows of a whole batch, from all processes.

        Args:
            rows: [n, ...], those of this process's share of the batch.
            count: the examples of the whole batch.

        Returns:
            [count, ...] in the batch's order; gradients reach this process's own rows, the others' are values.
        """
        if self.size == 1:
            return rows
        sent = rows.detach().view(torch.uint8) if rows.dtype == torch.bool else rows.detach()
        padded = sent.new_zeros(-(-count // self.size), *rows.shape[1:])
        padded[: len(rows)] = sent
        found = [torch.empty_like(padded) for _ in range(self.size)]
        torch.distributed.all_gather(found, padded)
        shares = [part[: len(self.share(count, rank))].view(rows.dtype) for rank, part in enumerate(found)]
        shares[self.rank] = rows
        return torch.cat(shares)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum each parameter's gradient over all processes; a parameter that none has a gradient of stays without."""
        if self.size == 1:
            return
        every = [parameter for parameter in parameters if parameter.requires_grad]
        has = self.sum(torch.tensor([float(parameter.grad is not None) for parameter in every]))
        used = [parameter for parameter, count in zip(every, has.tolist(), strict=True) if count]
        own = [torch.zeros_like(parameter) if parameter.grad is None else parameter.grad for parameter in used]
        whole = self.sum(torch.cat([gradient.flatten() for gradient in own]))
        for parameter, gradient in zip(used, whole.split([len(g.flatten()) for g in own]), strict=True):
            parameter.grad = gradient.view_as(parameter)


@contextmanager
def process_group(device: torch.device) -> Iterator[ProcessGroup]:
    """Join the other processes that torchrun started with this one, until all are done."""
    if launch.size() == 1:
        yield ProcessGroup()
        return
    backend = "nccl" if device.type == "cuda" else "gloo"
    torch.distributed.init_process_group(backend, timeout=PATIENCE)
    try:
        yield ProcessGroup(launch.rank(), launch.size(), device)
        torch.distributed.barrier()
    finally:
        torch.distributed.destroy_process_group()
